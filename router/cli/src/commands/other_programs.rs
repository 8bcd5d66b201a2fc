//! Commands of other programs: `namehop p4` executes `namehop-p4`; `namehop bench`, `cache`, `power`, `plan` and
//! `reproduce` execute `namehop-lab`. So a router is built without a compiler and without a laboratory.

use std::env;
use std::ffi::OsString;

use clap::Args;

use crate::failure::Failure;
use crate::programs;

/// Check P4 programs and test them with packets
///
/// Executes the program 'namehop-p4', which must be in the directory of 'namehop' or in the PATH. 'namehop p4 --help'
/// lists its commands.
#[derive(Args, Debug)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  namehop p4 --help\n  namehop p4 check switch.p4\n  namehop p4 test switch.p4 switch.stf"
)]
pub struct P4Args {
    /// Arguments of 'namehop-p4'
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl P4Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        Err(programs::execute(programs::P4, self.arguments))
    }
}

/// Defines a command of `namehop-lab`, which gets the whole command line.
macro_rules! lab_command {
    ($name:ident, $about:literal, $example:literal) => {
        #[doc = $about]
        ///
        /// Executes the program 'namehop-lab', which must be in the directory of 'namehop' or in the PATH.
        #[derive(Args, Debug)]
        #[command(disable_help_flag = true, after_help = concat!("Example:\n  ", $example))]
        pub struct $name {
            /// Arguments of the command
            #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
            arguments: Vec<OsString>,
        }

        impl $name {
            pub(super) fn run(self) -> Result<(), Failure> {
                Err(programs::execute(programs::LAB, env::args_os().skip(1)))
            }
        }
    };
}

lab_command!(BenchArgs, "Measure a forwarder, its tables or this host", "namehop bench --help");
lab_command!(CacheArgs, "Predict the performance of a cache", "namehop cache --help");
lab_command!(PowerArgs, "Predict the power of a router", "namehop power --help");
lab_command!(PlanArgs, "Calculate what a machine can forward, or what it needs for that", "namehop plan --help");
lab_command!(
    ReproduceArgs,
    "Regenerate published tables and figures on this host",
    "namehop reproduce throughput-bound patricia"
);
