//! The closed table of functions: what templates may call, what they may not, and why not.

use super::budget::Budget;
use super::builtins;
use super::error::Fault;
use super::sprig;
use super::value::Value;

/// The type that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Param {
    Any,
    Str,
    Int,
    Bool,
}

/// A function that templates can call.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// Types of the arguments that must be there.
    pub(super) fixed: &'static [Param],
    /// Type of the further arguments when there may be any number of them.
    pub(super) rest: Option<Param>,
    pub(super) body: Body,
}

/// How a function is run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    /// Arguments are evaluated one by one until one is false.
    And,
    /// Arguments are evaluated one by one until one is true.
    Or,
    Plain(fn(&mut Call<'_>) -> Result<Value, Fault>),
}

/// A call with its arguments. Their number and types have been checked.
pub(super) struct Call<'a> {
    pub(super) arguments: Vec<Value>,
    pub(super) budget: &'a mut Budget,
    /// The first argument as it is written, for messages.
    pub(super) first: &'a str,
}

impl Call<'_> {
    /// The argument at an index; nil when it isn't there.
    pub(super) fn argument(&self, index: usize) -> &Value {
        self.arguments.get(index).unwrap_or(&Value::Nil)
    }

    /// The arguments from an index on.
    pub(super) fn arguments_from(&self, index: usize) -> &[Value] {
        self.arguments.get(index..).unwrap_or_default()
    }
}

/// What the table says about a name.
pub(super) enum Lookup {
    Ready(&'static Function),
    /// Allowed, but not there yet.
    Missing,
    /// Never to be called, and why.
    Forbidden(&'static str),
    Unknown,
}

pub(super) fn find(name: &str) -> Lookup {
    if let Some(function) = BUILTINS.iter().chain(sprig::all()).find(|function| function.name == name) {
        return Lookup::Ready(function);
    }
    if MISSING.contains(&name) {
        return Lookup::Missing;
    }
    match FORBIDDEN.iter().find(|(_, names)| names.contains(&name)) {
        Some((reason, _)) => Lookup::Forbidden(reason),
        None => Lookup::Unknown,
    }
}

pub(super) const fn plain(
    name: &'static str,
    fixed: &'static [Param],
    rest: Option<Param>,
    body: fn(&mut Call<'_>) -> Result<Value, Fault>,
) -> Function {
    Function { name, fixed, rest, body: Body::Plain(body) }
}

const ANY: &[Param] = &[Param::Any];
const TWO: &[Param] = &[Param::Any, Param::Any];
const MANY: Option<Param> = Some(Param::Any);

static BUILTINS: &[Function] = &[
    Function { name: "and", fixed: ANY, rest: MANY, body: Body::And },
    plain("call", ANY, MANY, builtins::call),
    plain("deref", ANY, Some(Param::Str), builtins::deref),
    plain("eq", ANY, MANY, builtins::eq),
    plain("ge", TWO, None, builtins::ge),
    plain("gt", TWO, None, builtins::gt),
    plain("html", &[], MANY, builtins::html),
    plain("index", ANY, MANY, builtins::index),
    plain("js", &[], MANY, builtins::js),
    plain("le", TWO, None, builtins::le),
    plain("len", ANY, None, builtins::len),
    plain("lt", TWO, None, builtins::lt),
    plain("ne", TWO, None, builtins::ne),
    plain("not", ANY, None, builtins::not),
    Function { name: "or", fixed: ANY, rest: MANY, body: Body::Or },
    plain("print", &[], MANY, builtins::print),
    plain("printf", &[Param::Str], MANY, builtins::printf),
    plain("println", &[], MANY, builtins::println),
    plain("slice", ANY, MANY, builtins::slice),
    plain("urlquery", &[], MANY, builtins::urlquery),
];

/// Functions of Sprig that templates will be able to call.
#[rustfmt::skip]
static MISSING: &[&str] = &[
    "add", "add1", "add1f", "addf", "adler32sum", "append", "atoi", "b32dec", "b32enc", "b64dec", "b64enc", "base", "biggest",
    "camelcase", "ceil", "chunk", "clean", "compact", "concat", "deepCopy", "deepEqual", "dict", "dig", "dir", "div", "divf",
    "duration", "durationRound", "ext", "first", "float64", "floor", "fromJson", "get", "has", "hasKey", "initial", "int",
    "int64", "isAbs", "kebabcase", "keys", "last", "list", "max", "maxf", "merge", "mergeOverwrite", "min", "minf", "mod", "mul",
    "mulf", "mustAppend", "mustChunk", "mustCompact", "mustDeepCopy", "mustFirst", "mustFromJson", "mustHas", "mustInitial",
    "mustLast", "mustMerge", "mustMergeOverwrite", "mustPrepend", "mustPush", "mustRegexFind", "mustRegexFindAll",
    "mustRegexMatch", "mustRegexReplaceAll", "mustRegexReplaceAllLiteral", "mustRegexSplit", "mustRest", "mustReverse",
    "mustSlice", "mustToDate", "mustToJson", "mustToPrettyJson", "mustToRawJson", "mustUniq", "mustWithout", "omit", "osBase",
    "osClean", "osDir", "osExt", "osIsAbs", "pick", "pluck", "prepend", "push", "regexFind", "regexFindAll", "regexMatch",
    "regexQuoteMeta", "regexReplaceAll", "regexReplaceAllLiteral", "regexSplit", "rest", "reverse", "round", "semver",
    "semverCompare", "seq", "set", "sha1sum", "sha256sum", "sha512sum", "snakecase", "sub", "subf", "toDate", "toDecimal",
    "toJson", "toPrettyJson", "toRawJson", "tuple", "uniq", "unixEpoch", "unset", "until", "untilStep", "urlJoin", "urlParse",
    "values", "without",
];

/// Functions of Sprig that templates must not call. A render must give the same result for the same input, wherever
/// and whenever it runs, and must not reach out of the template.
#[rustfmt::skip]
static FORBIDDEN: &[(&str, &[&str])] = &[
    ("its result depends on the time or the time zone, so every render would differ", &[
        "ago", "date", "dateInZone", "dateModify", "date_in_zone", "date_modify", "htmlDate", "htmlDateInZone", "mustDateModify",
        "must_date_modify", "now",
    ]),
    ("its result is random, so every render would differ", &[
        "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric", "shuffle", "uuidv4",
    ]),
    ("it reads the environment of the hub", &["env", "expandenv"]),
    ("it asks the network of the hub", &["getHostByName"]),
    ("it makes keys, certificates or secrets, which don't belong into a spec; put them into a Secret", &[
        "bcrypt", "buildCustomCert", "decryptAES", "derivePassword", "encryptAES", "genCA", "genCAWithKey", "genPrivateKey",
        "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htpasswd",
    ]),
    ("it only serves to test Sprig itself", &["hello"]),
];

#[cfg(test)]
pub(super) fn names() -> (Vec<&'static str>, Vec<&'static str>, Vec<&'static str>) {
    let forbidden = FORBIDDEN.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    (BUILTINS.iter().chain(sprig::all()).map(|function| function.name).collect(), MISSING.to_vec(), forbidden)
}
