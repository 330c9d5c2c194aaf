//! Tokens into a tree. Functions, variables and literals are checked here, so that a branch that is never taken is
//! checked as well.

mod pipeline;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Arm, Branches, Definitions, Name, Node, NodeKind, ROOT, Span};
use super::budget::{MAX_NESTING, MAX_TEXT};
use super::error::{ErrorKind, Failure, Fault};
use super::lex::{Keyword, Kind, Lexer, Token};
use super::value::Text;

/// Parses a template's text.
pub(super) fn parse(text: &str) -> Result<Definitions, Failure> {
    if text.len() > MAX_TEXT {
        let message = format!("the text has {} bytes, more than the {MAX_TEXT} that a template may have; shorten it", text.len());
        return Err(Fault::new(ErrorKind::Budget, message).at(text, 0, None));
    }
    let mut parser = Parser::new(text);
    let main = parser.top()?;
    Ok(Definitions { main, named: parser.named })
}

/// What ended a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The text is over.
    Text,
    End,
    /// `else`, with the byte of its action. A word may follow in the same action: `else if`.
    Else(usize),
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    /// What stopped the lexer, in which action; met when all tokens before it are read.
    failure: Option<(usize, Fault, usize)>,
    next: usize,
    /// Where the action starts that is being read.
    action: usize,
    names: BTreeMap<&'t str, Name>,
    scope: Vec<Name>,
    /// How many `range` are open here.
    ranges: usize,
    depth: usize,
    named: BTreeMap<Text, Vec<Node>>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        let mut failure = None;
        loop {
            match lexer.next() {
                Ok(token) => {
                    tokens.push(token);
                    if token.kind == Kind::End {
                        break;
                    }
                }
                Err((offset, fault)) => {
                    failure = Some((offset, fault, lexer.action()));
                    break;
                }
            }
        }
        Self {
            text,
            tokens,
            failure,
            next: 0,
            action: 0,
            names: BTreeMap::from([("$", ROOT)]),
            scope: vec![ROOT],
            ranges: 0,
            depth: 0,
            named: BTreeMap::new(),
        }
    }

    // Tokens.

    fn peek(&self) -> Result<Token, Failure> {
        self.token_at(self.next)
    }

    fn token_at(&self, index: usize) -> Result<Token, Failure> {
        if let Some(token) = self.tokens.get(index).or_else(|| self.tokens.last().filter(|_| self.failure.is_none())) {
            return Ok(*token);
        }
        match &self.failure {
            Some((offset, fault, action)) => Err(fault.clone().at(self.text, *offset, Some(*action))),
            None => Err(self.error(self.text.len(), ErrorKind::Parse, "unexpected end of the template")),
        }
    }

    fn take(&mut self) -> Result<Token, Failure> {
        let token = self.peek()?;
        self.next += 1;
        if token.kind == Kind::LeftDelim {
            self.action = token.start;
        }
        Ok(token)
    }

    fn skip_space(&mut self) -> Result<(), Failure> {
        while self.peek()?.kind == Kind::Space {
            self.next += 1;
        }
        Ok(())
    }

    fn peek_word(&mut self) -> Result<Token, Failure> {
        self.skip_space()?;
        self.peek()
    }

    fn take_word(&mut self) -> Result<Token, Failure> {
        self.skip_space()?;
        self.take()
    }

    fn close(&mut self, context: &str) -> Result<(), Failure> {
        let token = self.take_word()?;
        if token.kind == Kind::RightDelim { Ok(()) } else { Err(self.unexpected(token, context)) }
    }

    fn written(&self, token: Token) -> &'t str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    // Errors.

    fn error(&self, offset: usize, kind: ErrorKind, message: impl Into<String>) -> Failure {
        Fault::new(kind, message).at(self.text, offset, Some(self.action))
    }

    fn unexpected(&self, token: Token, context: &str) -> Failure {
        let message = match token.kind {
            Kind::End => format!("unexpected end of the template in {context}"),
            _ => format!("unexpected {:?} in {context}", self.written(token)),
        };
        self.error(token.start, ErrorKind::Parse, message)
    }

    /// Goes one level deeper while `inner` runs.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        if self.depth >= MAX_NESTING {
            let offset = self.peek().map_or(self.text.len(), |token| token.start);
            let message = format!("blocks and parentheses are nested more than {MAX_NESTING} deep");
            return Err(self.error(offset, ErrorKind::Depth, message));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    // Nodes.

    /// The whole text: nodes and definitions.
    fn top(&mut self) -> Result<Vec<Node>, Failure> {
        let mut nodes = Vec::new();
        loop {
            match self.list_until_definition(&mut nodes)? {
                Some(Ending::Text) => return Ok(nodes),
                Some(Ending::End) => return Err(self.stray("end")),
                Some(Ending::Else(_)) => return Err(self.stray("else")),
                None => self.definition()?,
            }
        }
    }

    fn stray(&self, word: &str) -> Failure {
        let message = format!("{{{{ {word} }}}} without an open if, with, range, block or define");
        self.error(self.action, ErrorKind::Parse, message)
    }

    /// Nodes up to the end of the block or text; None when a definition stands next (its word was taken).
    fn list_until_definition(&mut self, nodes: &mut Vec<Node>) -> Result<Option<Ending>, Failure> {
        loop {
            let delim = self.peek()?;
            if delim.kind == Kind::LeftDelim {
                let start = self.next;
                self.take()?;
                if self.take_word()?.kind == Kind::Keyword(Keyword::Define) {
                    return Ok(None);
                }
                self.next = start;
            }
            if let Some(ending) = self.node(nodes)? {
                return Ok(Some(ending));
            }
        }
    }

    /// Nodes up to what ends the list.
    fn list(&mut self) -> Result<(Vec<Node>, Ending), Failure> {
        let mut nodes = Vec::new();
        loop {
            if let Some(ending) = self.node(&mut nodes)? {
                return Ok((nodes, ending));
            }
        }
    }

    /// Reads one node, or what ends the list of nodes.
    fn node(&mut self, nodes: &mut Vec<Node>) -> Result<Option<Ending>, Failure> {
        let token = self.take()?;
        match token.kind {
            Kind::Text => {
                let kind = NodeKind::Text(Span { start: token.start, end: token.end });
                nodes.push(Node { action: token.start, kind });
                Ok(None)
            }
            Kind::End => Ok(Some(Ending::Text)),
            Kind::LeftDelim => {
                let action = self.action;
                match self.action()? {
                    Action::Node(kind) => {
                        nodes.push(Node { action, kind });
                        Ok(None)
                    }
                    Action::Ending(ending) => Ok(Some(ending)),
                }
            }
            _ => Err(self.unexpected(token, "text")),
        }
    }

    /// An action whose delimiter was taken.
    fn action(&mut self) -> Result<Action, Failure> {
        let token = self.peek_word()?;
        let Kind::Keyword(keyword) = token.kind else {
            return self.pipeline("an action", Kind::RightDelim).map(|pipe| Action::Node(NodeKind::Pipeline(pipe)));
        };
        self.take()?;
        let kind = match keyword {
            Keyword::End => {
                self.close("end")?;
                return Ok(Action::Ending(Ending::End));
            }
            Keyword::Else => {
                let action = self.action;
                if !matches!(self.peek_word()?.kind, Kind::Keyword(Keyword::If | Keyword::With)) {
                    self.close("else")?;
                }
                return Ok(Action::Ending(Ending::Else(action)));
            }
            Keyword::Break => self.leave_loop(token, "break").map(|()| NodeKind::Break)?,
            Keyword::Continue => self.leave_loop(token, "continue").map(|()| NodeKind::Continue)?,
            Keyword::If => self.nested(|parser| parser.branches("if", Keyword::If)).map(NodeKind::If)?,
            Keyword::With => self.nested(|parser| parser.branches("with", Keyword::With)).map(NodeKind::With)?,
            Keyword::Range => self.nested(Self::range)?,
            Keyword::Template => self.call()?,
            Keyword::Block => self.nested(Self::block)?,
            Keyword::Define => return Err(self.error(token.start, ErrorKind::Parse, "define must not stand inside a block")),
        };
        Ok(Action::Node(kind))
    }

    fn leave_loop(&mut self, token: Token, word: &str) -> Result<(), Failure> {
        self.close(word)?;
        if self.ranges == 0 {
            return Err(self.error(token.start, ErrorKind::Parse, format!("{{{{ {word} }}}} outside of a range")));
        }
        Ok(())
    }

    /// A block that was opened by the action at `opened` and never closed.
    fn unclosed(&self, opened: usize, word: &str) -> Failure {
        let message = format!("{{{{ {word} }}}} is never closed; {{{{ end }}}} is missing");
        Fault::new(ErrorKind::Parse, message).at(self.text, opened, Some(opened))
    }

    fn branches(&mut self, word: &str, keyword: Keyword) -> Result<Branches, Failure> {
        let opened = self.action;
        let variables = self.scope.len();
        let mut arms = Vec::new();
        let mut action = opened;
        let otherwise = loop {
            let condition = self.pipeline(word, Kind::RightDelim)?;
            let (body, ending) = self.list()?;
            arms.push(Arm { action, condition, body });
            match ending {
                Ending::End => break Vec::new(),
                Ending::Text => return Err(self.unclosed(opened, word)),
                Ending::Else(_) if self.peek()?.kind == Kind::Keyword(keyword) => {
                    action = self.action;
                    self.take()?;
                }
                Ending::Else(_) => break self.otherwise(opened, word)?,
            }
        };
        self.scope.truncate(variables);
        Ok(Branches { arms, otherwise })
    }

    /// The last branch, whose `else` was taken.
    fn otherwise(&mut self, opened: usize, word: &str) -> Result<Vec<Node>, Failure> {
        let (nodes, ending) = self.list()?;
        match ending {
            Ending::End => Ok(nodes),
            Ending::Text => Err(self.unclosed(opened, word)),
            Ending::Else(action) => Err(self.error(
                action,
                ErrorKind::Parse,
                format!("expected {{{{ end }}}}: {{{{ {word} }}}} already has its {{{{ else }}}}"),
            )),
        }
    }

    fn range(&mut self) -> Result<NodeKind, Failure> {
        let opened = self.action;
        let variables = self.scope.len();
        let pipe = self.pipeline("range", Kind::RightDelim)?;
        self.ranges += 1;
        let (body, ending) = self.list()?;
        self.ranges -= 1;
        let otherwise = match ending {
            Ending::End => Vec::new(),
            Ending::Text => return Err(self.unclosed(opened, "range")),
            Ending::Else(_) => self.otherwise(opened, "range")?,
        };
        self.scope.truncate(variables);
        Ok(NodeKind::Range { pipe, body, otherwise })
    }

    fn call(&mut self) -> Result<NodeKind, Failure> {
        let (name, position) = self.template_name("template")?;
        let argument = if self.peek_word()?.kind == Kind::RightDelim {
            self.take()?;
            None
        } else {
            Some(self.pipeline("template", Kind::RightDelim)?)
        };
        Ok(NodeKind::Template { name, argument, position })
    }

    fn block(&mut self) -> Result<NodeKind, Failure> {
        let opened = self.action;
        let (name, position) = self.template_name("block")?;
        let argument = self.pipeline("block", Kind::RightDelim)?;
        self.body(opened, "block", &name)?;
        Ok(NodeKind::Template { name, argument: Some(argument), position })
    }

    fn definition(&mut self) -> Result<(), Failure> {
        let opened = self.action;
        let (name, _) = self.template_name("define")?;
        self.close("define")?;
        self.nested(|parser| parser.body(opened, "define", &name))
    }

    fn template_name(&mut self, context: &str) -> Result<(Text, usize), Failure> {
        let token = self.take_word()?;
        match token.kind {
            Kind::Quoted | Kind::Raw => Ok((self.string(token)?, token.start)),
            _ => Err(self.error(token.start, ErrorKind::Parse, format!("{context} needs the name of a template in quotes"))),
        }
    }

    /// The body of a named template. It sees no variables and no loop of the text around it.
    fn body(&mut self, opened: usize, word: &str, name: &Text) -> Result<(), Failure> {
        let scope = std::mem::replace(&mut self.scope, vec![ROOT]);
        let ranges = std::mem::take(&mut self.ranges);
        let (nodes, ending) = self.list()?;
        match ending {
            Ending::End => {}
            Ending::Text => return Err(self.unclosed(opened, word)),
            Ending::Else(_) => return Err(self.error(self.action, ErrorKind::Parse, format!("unexpected {{{{ else }}}} in {word}"))),
        }
        self.scope = scope;
        self.ranges = ranges;
        // An empty definition gives way to another one of the same name.
        match self.named.get(name) {
            Some(present) if !self.is_blank(present) => {
                if self.is_blank(&nodes) {
                    return Ok(());
                }
                let name = String::from_utf8_lossy(name);
                Err(Fault::new(ErrorKind::Parse, format!("template {name:?} is defined twice")).at(self.text, opened, Some(opened)))
            }
            _ => {
                self.named.insert(Arc::clone(name), nodes);
                Ok(())
            }
        }
    }

    fn is_blank(&self, nodes: &[Node]) -> bool {
        nodes.iter().all(|node| match node.kind {
            NodeKind::Text(span) => self.text.get(span.start..span.end).is_some_and(|text| text.trim().is_empty()),
            _ => false,
        })
    }
}

/// What an action is.
enum Action {
    Node(NodeKind),
    Ending(Ending),
}
