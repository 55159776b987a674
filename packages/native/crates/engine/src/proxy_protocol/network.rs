use std::net::IpAddr;
use std::str::FromStr;

/// A range of IP addresses, such as `10.0.0.0/8`. An IPv4 address that arrived on an IPv6 socket counts as IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

/// The text is no address, and no address with the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidNetwork;

impl Network {
    /// Whether an address is one of the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let ignored = u32::BITS - self.prefix_bits;
                (own.to_bits() ^ other.to_bits()).checked_shr(ignored).unwrap_or_default() == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let ignored = u128::BITS - self.prefix_bits;
                (own.to_bits() ^ other.to_bits()).checked_shr(ignored).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let most = if address.is_ipv4() { u32::BITS } else { u128::BITS };
        let prefix_bits = prefix.map_or(Ok(most), str::parse).map_err(|_| InvalidNetwork)?;
        if prefix_bits <= most { Ok(Self { address, prefix_bits }) } else { Err(InvalidNetwork) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_what_begins_like_it() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "203.0.113.7", "2001:db8::1"),
            ("2001:db8::/32", "2001:db8:1::2", "2001:db9::2"),
            ("::1", "::1", "::2"),
            ("::/0", "2001:db8::1", "203.0.113.7"),
        ] {
            let network: Network = network.parse().expect("a network");
            assert!(network.contains(inside.parse().expect("an address")), "{inside}");
            assert!(!network.contains(outside.parse().expect("an address")), "{outside}");
        }
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/-1", "here"] {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork), "{text}");
        }
    }
}
