//! The suite table (`suites.tsv`) and what of it a run wants.

use std::time::Duration;

/// The `model` of suites that run whatever was asked for.
pub const SHARED: &str = "shared";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scope {
    Lib,
    Integration,
    All,
}

impl Scope {
    pub fn parse(word: &str) -> Result<Scope, String> {
        match word {
            "lib" => Ok(Scope::Lib),
            "integration" => Ok(Scope::Integration),
            "all" => Ok(Scope::All),
            other => Err(format!("no such scope: {other} (lib, integration or all)")),
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Scope::Lib => "lib",
            Scope::Integration => "integration",
            Scope::All => "all",
        }
    }
}

/// One line of the table: one `cargo test` call.
#[derive(Clone, Debug)]
pub struct Suite {
    pub model: String,
    pub name: String,
    pub scope: Scope,
    pub package: String,
    pub target: Target,
    pub filter: Option<String>,
    pub limit: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Lib,
    /// A name or a pattern with `*`, as `cargo test --test` takes it.
    Test(String),
}

pub fn parse_table(text: &str) -> Result<Vec<Suite>, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.skip(1).map(parse_row).collect()
}

fn parse_row(line: &str) -> Result<Suite, String> {
    let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
    let [model, name, scope, package, target, filter, limit] = columns[..] else {
        return Err(format!("suite table: seven columns expected: {line}"));
    };
    let limit = limit.parse().map_err(|_| format!("suite table: no number of seconds: {line}"))?;
    Ok(Suite {
        model: model.to_string(),
        name: name.to_string(),
        scope: Scope::parse(scope)?,
        package: package.to_string(),
        target: if target == "lib" { Target::Lib } else { Target::Test(target.to_string()) },
        filter: (filter != "-").then(|| filter.to_string()),
        limit: Duration::from_secs(limit),
    })
}

/// The models of a request in its order, each once; `all` stands for every model of the table.
pub fn expand_models(request: &str, table: &[Suite]) -> Result<Vec<String>, String> {
    let mut known: Vec<String> = Vec::new();
    for suite in table.iter().filter(|suite| suite.model != SHARED) {
        if !known.contains(&suite.model) {
            known.push(suite.model.clone());
        }
    }
    let mut models: Vec<String> = Vec::new();
    for word in request.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        if word == "all" {
            return Ok(known);
        }
        if !known.iter().any(|model| model == word) {
            return Err(format!("no such model: {word} (known: {})", known.join(", ")));
        }
        if !models.iter().any(|model| model == word) {
            models.push(word.to_string());
        }
    }
    if models.is_empty() {
        Err("no model asked for".to_string())
    } else {
        Ok(models)
    }
}

/// The suites of a run: model by model, then the shared ones.
pub fn plan(models: &[String], scope: Scope, table: &[Suite]) -> Vec<Suite> {
    let wanted = |suite: &&Suite| suite.scope == Scope::All || scope == Scope::All || suite.scope == scope;
    let shared = SHARED.to_string();
    let order = models.iter().chain(std::iter::once(&shared));
    order.flat_map(|model| table.iter().filter(move |suite| &suite.model == model).filter(wanted)).cloned().collect()
}

/// The packages that the table names, in its order: they are compiled together first.
pub fn packages(table: &[Suite]) -> Vec<String> {
    let mut packages: Vec<String> = Vec::new();
    for suite in table {
        if !packages.contains(&suite.package) {
            packages.push(suite.package.clone());
        }
    }
    packages
}

/// Whether a target's name fits a pattern; only `*` is special, as in the table.
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).filter(|at| tail.is_char_boundary(*at)).any(|at| fits(rest, &tail[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<Suite> {
        parse_table(include_str!("../suites.tsv")).unwrap()
    }

    fn names(models: &str, scope: Scope) -> Vec<String> {
        let table = table();
        plan(&expand_models(models, &table).unwrap(), scope, &table).into_iter().map(|suite| suite.name).collect()
    }

    #[test]
    fn all_is_the_ten_models() {
        let ten = "dqn,ppo,tft,mamba2,tggn,tlob,liquid,kan,xlstm,diffusion";

        assert_eq!(ten, expand_models("all", &table()).unwrap().join(","));
        assert_eq!("tft,dqn", expand_models(" tft, dqn,tft ,", &table()).unwrap().join(","));
    }

    #[test]
    fn an_unknown_or_missing_model_is_refused() {
        assert!(expand_models("dqn,bert", &table()).unwrap_err().contains("no such model: bert"));
        assert!(expand_models("shared", &table()).is_err());
        assert!(expand_models(" ,", &table()).is_err());
    }

    #[test]
    fn a_scope_chooses_suites_and_the_shared_ones_always_run() {
        assert_eq!(vec!["ppo-lib", "core", "bayesian"], names("ppo", Scope::Lib));
        assert_eq!(vec!["tft-integ", "core", "bayesian"], names("tft", Scope::Integration));
        assert_eq!(7 + 2 + 2, names("dqn,ppo", Scope::All).len());
        assert_eq!(27, names("all", Scope::All).len());
    }

    #[test]
    fn the_packages_are_the_three_that_are_compiled() {
        assert_eq!(vec!["ml-dqn", "ml", "ml-core"], packages(&table()));
    }

    #[test]
    fn patterns_fit_whole_names() {
        assert!(fits("tft_*", "tft_forward_test"));
        assert!(fits("a*b*", "axxbyy"));
        assert!(!fits("tft_*", "my_tft_test"));
        assert!(!fits("kan", "kan_test"));
    }

    #[test]
    fn a_broken_table_says_where() {
        assert!(parse_table("head\ndqn\tx").unwrap_err().contains("seven columns"));
        assert!(parse_table("head\na\tb\tweird\tml\tlib\t-\t1").unwrap_err().contains("no such scope"));
    }
}
