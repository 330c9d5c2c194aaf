//! What one service may spend on rendering all its templates.

use super::error::{ErrorKind, Fault};

/// A template's text may have this many bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// Blocks and parentheses may be nested this deeply in a template's text.
pub(super) const MAX_NESTING: usize = 100;
/// Templates that call templates, blocks and parentheses together may be nested this deeply while running. Each level
/// takes stack; a test shows that this many fit into a thread of 2 MiB without optimization. It is enough for templates
/// that call each other from within an `if` as deeply as they may.
const MAX_FRAMES: usize = 210;
/// A function that builds text pays a step for this many bytes, since memory and time are spent though nothing is
/// written.
const BYTES_PER_STEP: usize = 64;

/// Limits for rendering, counted down over all templates of one service.
#[derive(Clone, Debug)]
pub struct Budget {
    steps: u64,
    max_steps: u64,
    output: usize,
    max_output: usize,
    max_depth: usize,
    depth: usize,
    frames: usize,
}

impl Default for Budget {
    /// One million steps, templates that call each other 100 deep, 1 MiB of output.
    fn default() -> Self {
        Self::new(1_000_000, 100, 1024 * 1024)
    }
}

impl Budget {
    /// A budget of so many steps (nodes, calls and iterations), levels of templates that call templates, and bytes
    /// of output.
    pub const fn new(max_steps: u64, max_depth: usize, max_output: usize) -> Self {
        Self { steps: 0, max_steps, output: 0, max_output, max_depth, depth: 0, frames: 0 }
    }

    /// Steps that were taken so far.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Bytes that were written so far.
    pub const fn output(&self) -> usize {
        self.output
    }

    pub(super) fn step(&mut self) -> Result<(), Fault> {
        self.spend(1)
    }

    /// Takes `count` steps at once.
    pub(super) fn spend(&mut self, count: usize) -> Result<(), Fault> {
        self.steps = self.steps.saturating_add(count as u64);
        if self.steps > self.max_steps {
            return Err(Fault::new(
                ErrorKind::Budget,
                format!("rendering takes more than {} steps; a loop in one of the templates runs too often, shorten it", self.max_steps),
            ));
        }
        Ok(())
    }

    /// Charges bytes that are written to the output.
    pub(super) fn write(&mut self, bytes: usize) -> Result<(), Fault> {
        self.output = self.output.saturating_add(bytes);
        if self.output > self.max_output {
            return Err(self.too_much_output());
        }
        Ok(())
    }

    /// Charges a text of so many bytes that a function is about to build.
    pub(super) fn build(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes > self.max_output {
            return Err(Fault::new(
                ErrorKind::Budget,
                format!("a function builds a text of more than {} bytes; use a smaller width or count", self.max_output),
            ));
        }
        self.spend(bytes / BYTES_PER_STEP)
    }

    /// The largest text that a function may build.
    pub(super) const fn max_output(&self) -> usize {
        self.max_output
    }

    fn too_much_output(&self) -> Fault {
        Fault::new(ErrorKind::Budget, format!("the templates of this service write more than {} bytes; print less", self.max_output))
    }

    /// Enters a template that is called by another; [`Budget::leave_template`] must follow when this succeeds.
    pub(super) fn enter_template(&mut self) -> Result<(), Fault> {
        if self.depth >= self.max_depth {
            return Err(Fault::new(
                ErrorKind::Depth,
                format!("templates call each other more than {} deep; a recursion has no end", self.max_depth),
            ));
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave_template(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Enters a block, parenthesis or value that is nested in another; [`Budget::leave`] must follow when this
    /// succeeds.
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        if self.frames >= MAX_FRAMES {
            return Err(Fault::new(
                ErrorKind::Depth,
                format!("templates, blocks and parentheses are nested more than {MAX_FRAMES} deep while rendering"),
            ));
        }
        self.frames += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.frames = self.frames.saturating_sub(1);
    }

    /// A render that failed leaves no level behind.
    pub(super) fn reset_depth(&mut self) {
        self.depth = 0;
        self.frames = 0;
    }
}
