//! Records as something to look at: one HTML page, CSV and Markdown. Reads records, never runs anything.

mod charts;
mod csv;
mod data;
mod explorer;
mod facts;
mod folder;
mod markdown;
mod num;
mod page;
mod sections;

pub use data::Data;
pub use explorer::{View, Views, explore, views_of};
pub use folder::{Written, check_place, folder_name, write};
pub use page::{Options, html};
