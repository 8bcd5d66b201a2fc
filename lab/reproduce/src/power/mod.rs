//! Power of routers: chapter 6 of Takemasa's thesis (2019), from the model in `namehop_power`.
//!
//! `processors` has tables 6.1 to 6.3 and figures 6.1 to 6.4; `devices` has chassis, memory and network cards;
//! `routers` has the costs of packets and the case study.

mod devices;
mod processors;
mod routers;

use namehop_power::servers::{self, PublishedServer};

pub(crate) use devices::{chassis, figure_6_5, figure_6_6};
pub(crate) use processors::{
    figure_6_1, figure_6_2, figure_6_3, figure_6_4, fits, linear, table_6_1, table_6_2, table_6_3,
};
pub(crate) use routers::{figure_6_7, figure_6_8, figure_6_9, figure_6_10};

use crate::published::power::{SERVERS, ServerText};

/// Servers 1, 2 and 3: their tables' parameters, and values printed elsewhere.
fn measured_servers() -> impl Iterator<Item = (PublishedServer, ServerText)> {
    SERVERS
        .into_iter()
        .filter_map(|text| Some((*servers::PUBLISHED.iter().find(|server| server.name == text.name)?, text)))
}
