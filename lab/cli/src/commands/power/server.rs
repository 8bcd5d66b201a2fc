//! `namehop power server`: the published servers of the model, and their descriptions.

use clap::Args;
use namehop_power::server::Server;
use namehop_power::servers::PUBLISHED;
use serde::Serialize;

use namehop_cli::failure::Failure;
use namehop_cli::output::{self, Align, Table};

/// List the published servers, or print the description of one
///
/// A description is a TOML file for 'namehop power model --server FILE' and for section [power] of the router's
/// configuration. Use a printed one as a template for your own. The servers are those of chapter 6 of Takemasa's thesis
/// (2019).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop power server
  namehop power server e3-1220 > my-server.toml")]
pub struct ServerArgs {
    /// Server to print [default: list all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    title: &'static str,
    #[serde(flatten)]
    server: Server,
}

impl ServerArgs {
    pub fn run(self) -> Result<(), Failure> {
        let Some(name) = self.name else {
            let listed: Vec<Listed> =
                PUBLISHED.iter().map(|server| Listed { title: server.title, server: server.server() }).collect();
            return if self.json { output::json(&listed) } else { list(&listed) };
        };
        let published = PUBLISHED.iter().find(|server| server.name == name);
        let published = published.ok_or_else(|| {
            Failure::usage(format!("'{name}' is not a published server; 'namehop power server' lists them"))
        })?;
        let server = published.server();
        if self.json { output::json(&server) } else { output::print(&server.to_toml(&[published.title.to_owned()])) }
    }
}

fn list(servers: &[Listed]) -> Result<(), Failure> {
    let columns =
        [("NAME", Align::Left), ("IDLE, W", Align::Right), ("BUSY CPU, W", Align::Right), ("SERVER", Align::Left)];
    let mut table = Table::new(&columns);
    for Listed { title, server } in servers {
        let busy_watts = server.cpu.device_watts() * f64::from(server.cpu.devices);
        let [idle, busy] = [server.chassis_watts, busy_watts].map(|watts| format!("{watts:.2}"));
        table.row([server.name.clone(), idle, busy, (*title).to_owned()]);
    }
    table.print()
}
