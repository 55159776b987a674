//! Where the connections of a `connect` go, and which group each belongs to.

use std::net::SocketAddr;

use super::connection::{GroupId, NO_PLAYER};
use super::opening::Route;
use super::protocol::{Connect, GroupShare};

/// One route per connection, without its source.
///
/// # Errors
/// The fields of the command do not go together.
pub(crate) fn routes(command: &Connect) -> Result<Vec<Route>, String> {
    let ip = command.ip()?;
    let one = command.port.map(|port| vec![port]);
    let ports = match (one, command.ports.clone()) {
        (Some(ports), None) | (None, Some(ports)) if !ports.is_empty() => ports,
        (None, None) if is_placed(command) => Vec::new(),
        _ => return Err("connect: either port or ports".to_owned()),
    };
    let everybody = [GroupShare { count: command.count, port: None }];
    let groups = command.groups.as_deref().unwrap_or(&everybody);
    let total = groups.iter().try_fold(0_usize, |total, group| total.checked_add(group.count));
    if total != Some(command.count) {
        return Err("connect: the groups have count connections".to_owned());
    }
    let mut routes = Vec::with_capacity(command.count);
    for (number, share) in groups.iter().enumerate() {
        let group = u16::try_from(number).map(GroupId).map_err(|_| "connect: at most 65536 groups".to_owned())?;
        for _ in 0..share.count {
            let port = share.port.unwrap_or_else(|| ports[routes.len() % ports.len()]);
            routes.push(Route { address: SocketAddr::new(ip, port), source: None, group, player: NO_PLAYER });
        }
    }
    Ok(routes)
}

/// Whether every group names its port.
fn is_placed(command: &Connect) -> bool {
    command.groups.as_ref().is_some_and(|groups| groups.iter().all(|group| group.port.is_some()))
}

/// Deals the routes to threads in turn, `counts[thread]` each, so that every group is on every thread.
pub(crate) fn deal(routes: &[Route], counts: &[usize]) -> Vec<Vec<Route>> {
    let mut hands: Vec<Vec<Route>> = counts.iter().map(|count| Vec::with_capacity(*count)).collect();
    let mut rest = routes.iter();
    while !rest.as_slice().is_empty() {
        let before = rest.as_slice().len();
        for (hand, count) in hands.iter_mut().zip(counts) {
            if hand.len() < *count {
                hand.extend(rest.next());
            }
        }
        if rest.as_slice().len() == before {
            break;
        }
    }
    hands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Command;

    fn placed(fields: &str) -> Result<Vec<(u16, u16)>, String> {
        let line = format!("{{\"cmd\":\"connect\",{fields}}}");
        let routes = routes(&Command::parse(&line).and_then(|command| command.fields::<Connect>())?)?;
        Ok(routes.into_iter().map(|route| (route.address.port(), route.group.0)).collect())
    }

    #[test]
    fn connections_take_the_ports_in_turn_and_groups_may_have_one_of_their_own() {
        assert_eq!(placed(r#""count":2,"port":5"#), Ok(vec![(5, 0), (5, 0)]));
        assert_eq!(placed(r#""count":3,"ports":[5,6]"#), Ok(vec![(5, 0), (6, 0), (5, 0)]));
        let groups = r#""groups":[{"count":2},{"count":0},{"count":1,"port":9}]"#;
        assert_eq!(placed(&format!(r#""count":3,"ports":[5,6],{groups}"#)), Ok(vec![(5, 0), (6, 0), (9, 2)]));
        assert_eq!(placed(r#""count":1,"groups":[{"count":1,"port":9}]"#), Ok(vec![(9, 0)]));
    }

    #[test]
    fn places_that_cannot_be_are_refused() {
        for fields in [
            r#""count":1"#,
            r#""count":1,"ports":[]"#,
            r#""count":1,"port":5,"ports":[6]"#,
            r#""count":1,"groups":[{"count":1}]"#,
            r#""count":2,"port":5,"groups":[{"count":1}]"#,
            r#""count":1,"port":5,"groups":[{"count":1},{"count":18446744073709551615}]"#,
            r#""count":1,"port":5,"groups":[{"count":1,"size":3}]"#,
        ] {
            assert!(placed(fields).is_err(), "{fields}");
        }
    }

    #[test]
    fn every_thread_gets_its_number_and_some_of_every_group() {
        let route = |port| Route {
            address: ([127, 0, 0, 1], port).into(),
            source: None,
            group: GroupId(port / 4),
            player: NO_PLAYER,
        };
        let routes: Vec<Route> = (0..8).map(route).collect();
        let ports = |hand: &[Route]| hand.iter().map(|route| route.address.port()).collect::<Vec<_>>();
        let hands = deal(&routes, &[3, 0, 5]);
        assert_eq!(
            hands.iter().map(|hand| ports(hand)).collect::<Vec<_>>(),
            [vec![0, 2, 4], vec![], vec![1, 3, 5, 6, 7]]
        );
    }
}
