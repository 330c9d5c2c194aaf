//! Runs a parsed template.

mod call;
mod pipeline;

use super::ast::{Branches, Definitions, Name, Node, NodeKind, Pipe, ROOT, Span};
use super::budget::Budget;
use super::error::{ErrorKind, Failure, Fault};
use super::format;
use super::value::Value;

/// Renders the main template with `dot`.
pub(super) fn render(text: &str, definitions: &Definitions, dot: &Value, budget: &mut Budget) -> Result<Vec<u8>, Failure> {
    budget.reset_depth();
    let mut exec = Exec { text, definitions, budget, output: Vec::new(), variables: vec![(ROOT, dot.clone())], action: 0 };
    exec.walk(dot, &definitions.main)?;
    Ok(exec.output)
}

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Exec<'t> {
    text: &'t str,
    definitions: &'t Definitions,
    budget: &'t mut Budget,
    output: Vec<u8>,
    /// Innermost last. A block forgets what was declared in it by cutting the list.
    variables: Vec<(Name, Value)>,
    /// Where the action starts that is being run.
    action: usize,
}

impl<'t> Exec<'t> {
    fn at(&self, offset: usize, fault: Fault) -> Failure {
        fault.at(self.text, offset, Some(self.action))
    }

    fn error(&self, offset: usize, kind: ErrorKind, message: impl Into<String>) -> Failure {
        self.at(offset, Fault::new(kind, message))
    }

    fn written(&self, span: Span) -> &'t str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    fn step(&mut self) -> Result<(), Failure> {
        self.budget.step().map_err(|fault| fault.at(self.text, self.action, Some(self.action)))
    }

    fn enter(&mut self) -> Result<(), Failure> {
        self.budget.enter().map_err(|fault| fault.at(self.text, self.action, Some(self.action)))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.budget.write(bytes.len()).map_err(|fault| fault.at(self.text, self.action, Some(self.action)))?;
        self.output.extend_from_slice(bytes);
        Ok(())
    }

    // Nodes.

    fn walk(&mut self, dot: &Value, nodes: &'t [Node]) -> Result<Flow, Failure> {
        self.enter()?;
        for node in nodes {
            self.action = node.action;
            self.step()?;
            let flow = match &node.kind {
                NodeKind::Text(span) => {
                    let text = self.written(*span);
                    self.write(text.as_bytes())?;
                    Flow::Next
                }
                NodeKind::Pipeline(pipe) => {
                    let value = self.pipeline(dot, pipe)?;
                    if pipe.variables.is_empty() {
                        self.print(pipe, &value)?;
                    }
                    Flow::Next
                }
                NodeKind::If(branches) => self.branches(dot, branches, false)?,
                NodeKind::With(branches) => self.branches(dot, branches, true)?,
                NodeKind::Range { pipe, body, otherwise } => self.range(dot, pipe, body, otherwise)?,
                NodeKind::Template { name, argument, position } => {
                    self.template(dot, name, argument.as_ref(), *position)?;
                    Flow::Next
                }
                NodeKind::Break => Flow::Break,
                NodeKind::Continue => Flow::Continue,
            };
            if flow != Flow::Next {
                self.budget.leave();
                return Ok(flow);
            }
        }
        self.budget.leave();
        Ok(Flow::Next)
    }

    fn print(&mut self, pipe: &Pipe, value: &Value) -> Result<(), Failure> {
        let (target, ends_in_nil) = value.indirect();
        if ends_in_nil || matches!(target, Value::Nil) {
            let expression = self.written(pipe.span);
            let message = format!(
                "`{expression}` has no value; give it one with `{{{{ {expression} | default \"...\" }}}}`, or print it only where it is \
                 set with `{{{{ if ... }}}}`"
            );
            return Err(self.error(pipe.span.start, ErrorKind::NoValue, message));
        }
        if let Value::Str(text) = target {
            return self.write(text);
        }
        let text = format::print(std::slice::from_ref(target), self.budget).map_err(|fault| self.at(pipe.span.start, fault))?;
        self.write(&text)
    }

    fn branches(&mut self, dot: &Value, branches: &'t Branches, rebinds: bool) -> Result<Flow, Failure> {
        let variables = self.variables.len();
        let mut flow = None;
        for arm in &branches.arms {
            self.action = arm.action;
            self.step()?;
            let value = self.pipeline(dot, &arm.condition)?;
            if value.truth() {
                flow = Some(self.walk(if rebinds { &value } else { dot }, &arm.body)?);
                break;
            }
        }
        let flow = match flow {
            Some(flow) => flow,
            None => self.walk(dot, &branches.otherwise)?,
        };
        self.variables.truncate(variables);
        Ok(flow)
    }

    fn range(&mut self, dot: &Value, pipe: &'t Pipe, body: &'t [Node], otherwise: &'t [Node]) -> Result<Flow, Failure> {
        let variables = self.variables.len();
        let value = self.pipeline(dot, pipe)?;
        let action = self.action;
        let iteration = Iteration { pipe, body, mark: self.variables.len(), action };
        let ran = match value.indirect().0 {
            Value::List(list) => {
                for (index, item) in list.items().iter().enumerate() {
                    if self.iterate(&iteration, || Value::int(index as i64), &item.element())? == Flow::Break {
                        break;
                    }
                }
                !list.items().is_empty()
            }
            Value::Map(map) => {
                for (key, item) in map.iter() {
                    if self.iterate(&iteration, || Value::Str(key.clone()), &item.element())? == Flow::Break {
                        break;
                    }
                }
                !map.is_empty()
            }
            Value::Int(kind, count) => self.count(&iteration, *count, |number| Value::Int(*kind, number))?,
            Value::Uint(kind, count) => {
                let limit = i64::try_from(*count).unwrap_or(i64::MAX);
                self.count(&iteration, limit, |number| Value::Uint(*kind, number as u64))?
            }
            Value::Nil => false,
            other => return Err(self.no_range(other, pipe.span)),
        };
        let flow = if ran { Flow::Next } else { self.walk(dot, otherwise)? };
        self.variables.truncate(variables);
        Ok(flow)
    }

    #[cold]
    fn no_range(&self, value: &Value, span: Span) -> Failure {
        let message = if value.is_nil() {
            let expression = self.written(span);
            format!("range can't iterate over `{expression}`, which is not set; use `deref`, or put the range into `{{{{ with ... }}}}`")
        } else {
            format!("range can't iterate over {}; it takes lists, maps and integers", value.noun())
        };
        self.error(span.start, ErrorKind::Type, message)
    }

    /// Counts from 0. Whether there was an iteration.
    fn count(&mut self, iteration: &Iteration<'t>, limit: i64, number: impl Fn(i64) -> Value) -> Result<bool, Failure> {
        if iteration.pipe.variables.len() > 1 {
            let message = "range over an integer sets one variable only";
            return Err(self.error(iteration.pipe.span.start, ErrorKind::Type, message));
        }
        for value in 0..limit {
            if self.iterate(iteration, || Value::Nil, &number(value))? == Flow::Break {
                break;
            }
        }
        Ok(limit > 0)
    }

    /// Runs the body of a range once.
    fn iterate(&mut self, iteration: &Iteration<'t>, index: impl FnOnce() -> Value, item: &Value) -> Result<Flow, Failure> {
        self.action = iteration.action;
        self.step()?;
        let pipe = iteration.pipe;
        // With two variables the index comes first; with one it is the element.
        let (element, position) = match pipe.variables.as_slice() {
            [first, second, ..] => (Some(*second), Some(*first)),
            [only] => (Some(*only), None),
            [] => (None, None),
        };
        for (variable, value) in [(position, position.map(|_| index())), (element, element.map(|_| item.clone()))] {
            let (Some(variable), Some(value)) = (variable, value) else { continue };
            if pipe.assigns {
                self.assign(variable, value, pipe.span)?;
            } else if let Some(slot) = self.variables.iter_mut().take(iteration.mark).rev().find(|(name, _)| *name == variable) {
                // Declared by the pipeline of this very range: the innermost of its name.
                slot.1 = value;
            }
        }
        let flow = self.walk(item, iteration.body)?;
        self.variables.truncate(iteration.mark);
        Ok(flow)
    }

    fn template(&mut self, dot: &Value, name: &[u8], argument: Option<&'t Pipe>, position: usize) -> Result<(), Failure> {
        let Some(nodes) = self.definitions.named.get(name) else {
            return Err(self.no_template(name, position));
        };
        self.budget.enter_template().map_err(|fault| fault.at(self.text, position, Some(self.action)))?;
        let value = match argument {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Value::Nil,
        };
        let outer = std::mem::replace(&mut self.variables, vec![(ROOT, value.clone())]);
        self.walk(&value, nodes)?;
        self.variables = outer;
        self.budget.leave_template();
        Ok(())
    }

    #[cold]
    fn no_template(&self, name: &[u8], position: usize) -> Failure {
        let message = format!("template {:?} is not defined; each string is a template of its own", String::from_utf8_lossy(name));
        self.error(position, ErrorKind::UnknownTemplate, message)
    }
}

/// What the iterations of one range share.
struct Iteration<'t> {
    pipe: &'t Pipe,
    body: &'t [Node],
    /// The number of variables when the body starts.
    mark: usize,
    action: usize,
}
