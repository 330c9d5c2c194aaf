//! Text into tokens. Go's rules: `{{-` trims only before white space, comments stand alone in an action, spaces are
//! tokens since `$x.A` differs from `$x .A`.

use super::error::{ErrorKind, Fault};
use super::format::is_letter_or_digit;

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
/// A trim marker is a minus sign and the white space beside it.
const TRIM_MARKER: usize = 2;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text between actions, trimmed.
    Text,
    LeftDelim,
    RightDelim,
    Space,
    /// `=`
    Assign,
    /// `:=`
    Declare,
    Pipe,
    LeftParen,
    RightParen,
    /// A lone character that has no meaning of its own; a comma has one between variables.
    Char,
    /// The cursor.
    Dot,
    /// `.Name`
    Field,
    /// `$` or `$name`
    Variable,
    Identifier,
    Bool,
    Nil,
    /// `"..."` as it is written.
    Quoted,
    /// A raw string in backquotes as it is written.
    Raw,
    /// `'x'` as it is written.
    CharConstant,
    Number,
    Complex,
    Keyword(Keyword),
    End,
}

/// A word that is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

impl Keyword {
    fn find(word: &str) -> Option<Self> {
        Some(match word {
            "block" => Self::Block,
            "break" => Self::Break,
            "continue" => Self::Continue,
            "define" => Self::Define,
            "else" => Self::Else,
            "end" => Self::End,
            "if" => Self::If,
            "range" => Self::Range,
            "template" => Self::Template,
            "with" => Self::With,
            _ => return None,
        })
    }
}

/// A token: a piece of the template's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// First byte.
    pub(super) start: usize,
    /// The byte after the last.
    pub(super) end: usize,
}

/// Where in the text something is wrong.
pub(super) type Misfit = (usize, Fault);

/// Reads tokens one after the other.
pub(super) struct Lexer<'t> {
    text: &'t str,
    position: usize,
    inside: bool,
    parens: usize,
    /// Where the action began that is being read.
    action: usize,
    /// Where the text before the next action begins; white space that a trim marker eats is skipped.
    ended: bool,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, position: 0, inside: false, parens: 0, action: 0, ended: false }
    }

    /// Byte at which the latest action starts.
    pub(super) fn action(&self) -> usize {
        self.action
    }

    /// The next token; [`Kind::End`] at the end, again and again.
    pub(super) fn next(&mut self) -> Result<Token, Misfit> {
        if self.inside {
            return self.action_token();
        }
        loop {
            if self.ended {
                return Ok(self.token(Kind::End, self.position));
            }
            if let Some(token) = self.text_or_delim()? {
                return Ok(token);
            }
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += next.len_utf8();
        Some(next)
    }

    fn token(&self, kind: Kind, start: usize) -> Token {
        Token { kind, start, end: self.position }
    }

    fn fault(&self, message: impl Into<String>) -> Misfit {
        (self.position.min(self.text.len()), Fault::new(ErrorKind::Parse, message))
    }

    /// Text up to the next action, or the delimiter when the action starts here. None after a comment or when all the
    /// text was trimmed away.
    fn text_or_delim(&mut self) -> Result<Option<Token>, Misfit> {
        let start = self.position;
        let Some(distance) = self.rest().find(LEFT) else {
            self.position = self.text.len();
            self.ended = true;
            return Ok((start < self.position).then(|| self.token(Kind::Text, start)));
        };
        let delim = start + distance;
        let after = self.text.get(delim + LEFT.len()..).unwrap_or_default();
        let trim = has_left_trim_marker(after);
        if distance > 0 {
            let text = self.text.get(start..delim).unwrap_or_default();
            let kept = if trim { text.trim_end_matches(is_space).len() } else { text.len() };
            if kept > 0 {
                // The delimiter is found again with the next call; what was trimmed is skipped by the same rule.
                self.position = delim;
                return Ok(Some(Token { kind: Kind::Text, start, end: start + kept }));
            }
        }
        self.action = delim;
        self.position = delim + LEFT.len() + if trim { TRIM_MARKER } else { 0 };
        if self.rest().starts_with("/*") {
            self.comment()?;
            return Ok(None);
        }
        self.inside = true;
        self.parens = 0;
        Ok(Some(self.token(Kind::LeftDelim, delim)))
    }

    fn comment(&mut self) -> Result<(), Misfit> {
        let Some(length) = self.rest().get(2..).and_then(|inner| inner.find("*/")) else {
            return Err(self.fault("unclosed comment"));
        };
        self.position += 2 + length + 2;
        match right_delim(self.rest()) {
            Some(length) => self.leave(length),
            None => return Err(self.fault("a comment must fill its action; close the action right behind */")),
        }
        Ok(())
    }

    /// Skips the closing delimiter of so many bytes and, when it trims, the white space behind it.
    fn leave(&mut self, length: usize) {
        self.position += length;
        if length > RIGHT.len() {
            let rest = self.rest();
            self.position += rest.len() - rest.trim_start_matches(is_space).len();
        }
        self.inside = false;
    }

    fn action_token(&mut self) -> Result<Token, Misfit> {
        let start = self.position;
        if let Some(length) = right_delim(self.rest()) {
            if self.parens > 0 {
                return Err(self.fault("unclosed left parenthesis"));
            }
            let token = Token { kind: Kind::RightDelim, start, end: start + length };
            self.leave(length);
            return Ok(token);
        }
        let Some(next) = self.bump() else {
            return Err((self.action, Fault::new(ErrorKind::Parse, "unclosed action: }} is missing")));
        };
        let kind = match next {
            _ if is_space(next) => self.space(),
            '=' => Kind::Assign,
            ':' => {
                if self.bump() != Some('=') {
                    self.position = start;
                    return Err(self.fault("expected := after a variable"));
                }
                Kind::Declare
            }
            '|' => Kind::Pipe,
            '"' => self.quoted('"', "unterminated quoted string").map(|()| Kind::Quoted)?,
            '\'' => self.quoted('\'', "unterminated character constant").map(|()| Kind::CharConstant)?,
            '`' => {
                let Some(length) = self.rest().find('`') else {
                    self.position = start;
                    return Err(self.fault("unterminated raw string"));
                };
                self.position += length + 1;
                Kind::Raw
            }
            '$' => self.name(Kind::Variable, Kind::Variable)?,
            '.' if !self.peek().is_some_and(|digit| digit.is_ascii_digit()) => self.name(Kind::Dot, Kind::Field)?,
            '.' | '+' | '-' | '0'..='9' => {
                self.position = start;
                self.number()?
            }
            '(' => {
                self.parens += 1;
                Kind::LeftParen
            }
            ')' => {
                let Some(parens) = self.parens.checked_sub(1) else {
                    self.position = start;
                    return Err(self.fault("unexpected right parenthesis"));
                };
                self.parens = parens;
                Kind::RightParen
            }
            _ if is_word(next) => self.word(start)?,
            ' '..='~' => Kind::Char,
            _ => {
                self.position = start;
                return Err(self.fault(format!("unrecognized character {next:?} in an action")));
            }
        };
        Ok(self.token(kind, start))
    }

    /// The rest of a run of white space, up to the space that belongs to a trim marker.
    fn space(&mut self) -> Kind {
        while right_delim(self.rest()).is_none_or(|length| length == RIGHT.len()) && self.peek().is_some_and(is_space) {
            self.bump();
        }
        Kind::Space
    }

    fn quoted(&mut self, quote: char, unterminated: &str) -> Result<(), Misfit> {
        let start = self.position - 1;
        loop {
            match self.bump() {
                Some('\\') if !matches!(self.peek(), None | Some('\n')) => {
                    self.bump();
                }
                None | Some('\n' | '\\') => {
                    self.position = start;
                    return Err(self.fault(unterminated));
                }
                Some(next) if next == quote => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// A field or variable whose first character was read: `bare` when nothing follows it.
    fn name(&mut self, bare: Kind, named: Kind) -> Result<Kind, Misfit> {
        if self.at_terminator() {
            return Ok(bare);
        }
        while self.peek().is_some_and(is_word) {
            self.bump();
        }
        self.terminated().map(|()| named)
    }

    fn word(&mut self, start: usize) -> Result<Kind, Misfit> {
        while self.peek().is_some_and(is_word) {
            self.bump();
        }
        self.terminated()?;
        let word = self.text.get(start..self.position).unwrap_or_default();
        Ok(match word {
            "true" | "false" => Kind::Bool,
            "nil" => Kind::Nil,
            _ => Keyword::find(word).map_or(Kind::Identifier, Kind::Keyword),
        })
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | '(' | ')') => true,
            Some(next) => is_space(next) || self.rest().starts_with(RIGHT),
        }
    }

    fn terminated(&self) -> Result<(), Misfit> {
        match self.peek() {
            Some(next) if !self.at_terminator() => {
                Err(self.fault(format!("bad character {next:?}; names end before a space, a dot, a comma, | or a parenthesis")))
            }
            _ => Ok(()),
        }
    }

    fn number(&mut self) -> Result<Kind, Misfit> {
        let start = self.position;
        let mut sound = self.scan_number();
        let mut kind = Kind::Number;
        if sound && matches!(self.peek(), Some('+' | '-')) {
            kind = Kind::Complex;
            sound = self.scan_number() && self.text.get(start..self.position).is_some_and(|text| text.ends_with('i'));
        }
        if sound {
            return Ok(kind);
        }
        let text = self.text.get(start..self.position).unwrap_or_default();
        Err((start, Fault::new(ErrorKind::Parse, format!("bad number {text:?}"))))
    }

    fn accept(&mut self, set: &str) -> bool {
        let found = self.peek().is_some_and(|next| set.contains(next));
        if found {
            self.bump();
        }
        found
    }

    fn accept_run(&mut self, set: &str) {
        while self.accept(set) {}
    }

    /// Takes everything that may belong to a number; whether its parts make sense is decided later.
    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEX: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEX;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = if digits == DECIMAL { self.accept("eE") } else { digits == HEX && self.accept("pP") };
        if exponent {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_word) {
            self.bump();
            return false;
        }
        true
    }
}

pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// Letters, digits and the underscore make names.
fn is_word(character: char) -> bool {
    character == '_' || is_letter_or_digit(character)
}

fn has_left_trim_marker(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next() == Some('-') && characters.next().is_some_and(is_space)
}

/// The length of the closing delimiter, trim marker included, when one stands here.
fn right_delim(text: &str) -> Option<usize> {
    if text.starts_with(RIGHT) {
        return Some(RIGHT.len());
    }
    let mut characters = text.chars();
    let trims = characters.next().is_some_and(is_space) && characters.next() == Some('-') && characters.as_str().starts_with(RIGHT);
    trims.then_some(TRIM_MARKER + RIGHT.len())
}

/// The length of the action at the start of `text`, delimiters included; None when it isn't closed.
pub(super) fn action_length(text: &str) -> Option<usize> {
    let mut lexer = Lexer::new(text);
    loop {
        match lexer.next() {
            Ok(Token { kind: Kind::RightDelim, end, .. }) => return Some(end),
            Ok(Token { kind: Kind::End, .. }) => return None,
            Ok(_) => {}
            // What can't be read is quoted up to the first thing that looks like its end.
            Err(_) => return text.find(RIGHT).map(|at| at + RIGHT.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            let token = lexer.next().unwrap();
            if token.kind == Kind::End {
                return found;
            }
            found.push((token.kind, &text[token.start..token.end]));
        }
    }

    #[test]
    fn markers_trim_only_beside_white_space() {
        assert_eq!(
            kinds("a \n{{- 1 -}} \t b"),
            [(Kind::Text, "a"), (Kind::LeftDelim, "{{- "), (Kind::Number, "1"), (Kind::RightDelim, " -}}"), (Kind::Text, "b")]
        );
        assert_eq!(
            kinds("a {{-1}} b"),
            [(Kind::Text, "a "), (Kind::LeftDelim, "{{"), (Kind::Number, "-1"), (Kind::RightDelim, "}}"), (Kind::Text, " b")]
        );
    }

    #[test]
    fn a_comment_leaves_no_token() {
        assert_eq!(kinds("a {{- /* {{ x }} */ -}} b"), [(Kind::Text, "a"), (Kind::Text, "b")]);
    }

    #[test]
    fn text_that_is_trimmed_away_leaves_no_token() {
        assert_eq!(kinds(" \n {{- 1}}").first().map(|(kind, _)| *kind), Some(Kind::LeftDelim));
    }

    #[test]
    fn spaces_before_a_trim_marker_are_one_token() {
        assert_eq!(kinds("{{1   -}}"), [(Kind::LeftDelim, "{{"), (Kind::Number, "1"), (Kind::Space, "  "), (Kind::RightDelim, " -}}")]);
    }

    #[test]
    fn the_length_of_an_action_counts_strings_and_trim_markers() {
        assert_eq!(action_length("{{ \"}}\" -}} x"), Some(11));
        assert_eq!(action_length("{{ .Name"), None);
    }
}
