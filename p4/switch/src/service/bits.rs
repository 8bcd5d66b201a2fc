//! Numbers in P4Runtime's encoding: big-endian bytes without leading zeros.

use namehop_p4_lang::value;
use namehop_p4runtime::Status;
use num_bigint::{BigInt, Sign};

/// Decodes a number of up to `width` bits; leading zeros are allowed. `what` is called only for an error message,
/// because it takes longer than decoding.
pub fn read(what: &dyn Fn() -> String, bytes: &[u8], width: u32) -> Result<BigInt, Status> {
    if bytes.is_empty() {
        return Err(Status::invalid_argument(format!("{}: a value must have at least one byte", what())));
    }
    let number = BigInt::from_bytes_be(Sign::Plus, bytes);
    if number > value::mask(width) {
        return Err(Status::out_of_range(format!("{}: {number:#x} does not fit into {width} bits", what())));
    }
    Ok(number)
}

/// Encodes a number in the canonical form.
pub fn write(number: &BigInt) -> Vec<u8> {
    number.magnitude().to_bytes_be()
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;

    use super::{read, write};

    #[test]
    fn values_are_as_short_as_can_be_and_have_to_fit() {
        let what = || "x".to_owned();
        for (bytes, width, number) in [(&[0][..], 1, 0), (&[1], 1, 1), (&[0, 0, 1, 0xFF], 9, 511), (&[0xFF], 8, 255)] {
            assert_eq!(read(&what, bytes, width).expect("the value fits"), BigInt::from(number));
        }
        assert_eq!((write(&0.into()), write(&511.into())), (vec![0], vec![1, 0xFF]));
        assert!(read(&what, &[2], 1).expect_err("too large").message().contains("1 bits"));
        assert!(read(&what, &[], 8).is_err());
    }
}
