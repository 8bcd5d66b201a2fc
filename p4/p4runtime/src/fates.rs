//! The status of a `Write` with the result of each update, small enough for clients.
//!
//! gRPC sends it base64-encoded in a trailer, and clients reject more than 8 KiB of headers: they would not even see
//! that updates failed. So details are shortened as far as necessary. First messages are truncated, beginning with
//! those of the last failed updates. Then details use the short form of the type name. Finally only the first updates
//! have details, and the message says how many.

use prost::Message as _;
use prost::encoding::encoded_len_varint;
use prost_types::Any;
use tonic::{Code, Status};

use crate::generated::google::rpc;
use crate::message::Error;

/// Maximum size of the encoded status, in bytes: base64 makes it a third larger, and together with the other headers of
/// the trailer it stays below 8 KiB.
const MOST_BYTES: usize = 5600;
/// Part of [`MOST_BYTES`] that is left for messages if not all updates have details.
const MESSAGE_BYTES: usize = 500;
/// Type name of the details: as most servers write it, and in the shortest form that clients accept
/// (`google.protobuf.Any`).
const ERROR_TYPE: &str = "type.googleapis.com/p4.v1.Error";
const SHORT_ERROR_TYPE: &str = "/p4.v1.Error";
/// A message is omitted if it would have to be shorter than this.
const LEAST_MESSAGE_BYTES: usize = 16;

/// Makes the status of a request with some failed updates.
pub fn status(results: &[Result<(), Status>]) -> Status {
    let failed = results.iter().filter(|result| result.is_err()).count();
    let message = format!("{failed} of {} updates failed", results.len());
    for error_type in [ERROR_TYPE, SHORT_ERROR_TYPE] {
        if let Some(room) = MOST_BYTES.checked_sub(encoded(&message, &codes(results, error_type)).len()) {
            return with_details(&message, with_messages(results, error_type, room));
        }
    }
    let mut told = results.len();
    loop {
        let message = format!("{message}; details cover only the first {told}: send smaller batches");
        let details = codes(&results[..told], SHORT_ERROR_TYPE);
        let bytes = encoded(&message, &details).len();
        if bytes <= MOST_BYTES - MESSAGE_BYTES {
            return with_details(&message, with_messages(&results[..told], SHORT_ERROR_TYPE, MOST_BYTES - bytes));
        }
        // All details have about the same size.
        told = (told * (MOST_BYTES - MESSAGE_BYTES) / bytes).min(told - 1);
    }
}

/// Reads the result of each update from the status of a request; `None` if the status has none. The last results may
/// be missing.
pub fn results(status: &Status) -> Option<Vec<Result<(), Status>>> {
    let details = rpc::Status::decode(status.details()).ok()?.details;
    let result = |detail: &Any| {
        let Error { canonical_code, message } = Error::decode(&*detail.value).unwrap_or_default();
        match Code::from_i32(canonical_code) {
            Code::Ok => Ok(()),
            code => Err(Status::new(code, message)),
        }
    };
    Some(details.iter().map(result).collect()).filter(|results: &Vec<_>| !results.is_empty())
}

fn with_details(message: &str, details: Vec<Any>) -> Status {
    Status::with_details(Code::Unknown, message, encoded(message, &details).into())
}

fn encoded(message: &str, details: &[Any]) -> Vec<u8> {
    let (message, details) = (message.to_owned(), details.to_vec());
    rpc::Status { code: Code::Unknown as i32, message, details }.encode_to_vec()
}

fn detail(error_type: &str, result: &Result<(), Status>, message: &str) -> Any {
    let error = match result {
        Ok(()) => Error::default(),
        Err(status) => Error { canonical_code: status.code() as i32, message: message.to_owned() },
    };
    Any { type_url: error_type.to_owned(), value: error.encode_to_vec() }
}

/// Details without messages.
fn codes(results: &[Result<(), Status>], error_type: &str) -> Vec<Any> {
    results.iter().map(|result| detail(error_type, result, "")).collect()
}

/// Details with as many of the messages, from the first one on, as fit into `room` bytes.
fn with_messages(results: &[Result<(), Status>], error_type: &str, mut room: usize) -> Vec<Any> {
    let of = |result: &Result<(), Status>| {
        let Err(status) = result else { return detail(error_type, result, "") };
        let plain = detail(error_type, result, "");
        // The text's own header, and longer length fields of the messages around it.
        let overhead = 1 + 3 * encoded_len_varint(room as u64);
        let text = beginning(status.message(), room.saturating_sub(overhead));
        let detail = detail(error_type, result, &text);
        let more = size(&detail) - size(&plain);
        room -= more.min(room);
        detail
    };
    results.iter().map(of).collect()
}

/// Size of a detail within a status, in bytes.
fn size(detail: &Any) -> usize {
    let bytes = detail.encoded_len();
    1 + encoded_len_varint(bytes as u64) + bytes
}

/// The text, truncated to `most` bytes if it is longer.
fn beginning(text: &str, most: usize) -> String {
    const CUT: &str = "...";
    match text.len() {
        length if length <= most => text.to_owned(),
        _ if most < LEAST_MESSAGE_BYTES => String::new(),
        _ => format!("{}{CUT}", &text[..text.floor_char_boundary(most - CUT.len())]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(status: &Status) -> Vec<(Code, String)> {
        let details = rpc::Status::decode(status.details()).expect("a status").details;
        details
            .iter()
            .map(|any| {
                assert!(any.type_url.ends_with("/p4.v1.Error"));
                let error = Error::decode(&*any.value).expect("an error");
                (Code::from_i32(error.canonical_code), error.message)
            })
            .collect()
    }

    /// Size of the headers of a trailer as RFC 9113 counts it: names, values, and 32 bytes for each.
    fn header_bytes(status: &Status) -> usize {
        let response = status.clone().into_http::<()>();
        response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
    }

    fn results(count: usize, message: &str) -> Vec<Result<(), Status>> {
        (0..count)
            .map(|number| match number % 3 {
                0 => Err(Status::already_exists(format!("{number}: {message}"))),
                1 => Err(Status::not_found(format!("{number}: {message}"))),
                _ => Ok(()),
            })
            .collect()
    }

    #[test]
    fn a_status_fits_into_the_headers_of_clients_and_tells_each_code() {
        for message in ["", "table t already has an entry with this key; delete or modify it", &"€".repeat(3000)] {
            for count in [1, 2, 10, 100, 130, 150, 200, 250, 300, 1000, 4096, 100_000] {
                let results = results(count, message);
                let status = status(&results);
                assert!(header_bytes(&status) < 8192, "{count} updates: {} bytes", header_bytes(&status));
                let told = shown(&status);
                assert!(told.len() == count || told.len() >= 230, "{count}: {}", told.len());
                assert_eq!(status.message().contains("details cover only the first"), told.len() < count);
                for (result, (code, text)) in results.iter().zip(&told) {
                    let expected = result.as_ref().err();
                    assert_eq!(*code, expected.map_or(Code::Ok, Status::code));
                    let whole = expected.map_or("", Status::message);
                    assert!(whole.starts_with(text.trim_end_matches("...")), "{text}");
                }
                // Complete messages come first.
                let is_full = |(result, (_, text)): (&Result<(), Status>, &(Code, String))| {
                    result.as_ref().err().is_none_or(|status| status.message() == text)
                };
                let full = results.iter().zip(&told).map(is_full).collect::<Vec<_>>();
                let first_cut = full.iter().position(|full| !full).unwrap_or(full.len());
                if message.len() < 100 && count <= 130 {
                    assert!(first_cut >= 10.min(count), "{count}: {first_cut}");
                }
            }
        }
    }

    #[test]
    fn few_updates_are_told_in_full() {
        let status = status(&results(30, "it is there"));
        assert_eq!(status.message(), "20 of 30 updates failed");
        assert_eq!(shown(&status)[4], (Code::NotFound, "4: it is there".to_owned()));
    }
}
