//! The `restride` command-line tool; everything it does is in the library's `cli` module.

fn main() -> std::process::ExitCode {
    restride::cli::main()
}
