//! RFC 5595: Service Codes, their text notation and their use in accepting connections.

use talkspurt_proto::dccp::{Config, Kind, ResetCode, Service, ServiceError};
use talkspurt_proto::endpoint::{Event, Input};
use talkspurt_testing::dccp::*;

/// §2.1 and RFC 4340 §8.1.2: the three notations of the one code "fdpz", which RFC 4340 gives.
#[test]
fn notations() {
    let fdpz = Service(1_717_858_426);
    for written in ["SC:fdpz", "SC=1717858426", "SC=x6664707A", "SC=X6664707a", "fdpz"] {
        assert_eq!(written.parse(), Ok(fdpz), "{written}");
    }
    assert_eq!(fdpz.to_string(), "SC:fdpz");
    // Padded with spaces on the right.
    assert_eq!("SC:ab".parse(), Ok(Service(0x6162_2020)));
    assert_eq!(Service(0x6162_2020).to_string(), "SC:ab");
    assert_eq!(Service(42).to_string(), "SC=42");
    assert_eq!("SC=0".parse(), Ok(Service::NONE));
}

#[test]
fn what_is_no_code() {
    assert_eq!("SC=4294967295".parse::<Service>(), Err(ServiceError::Invalid));
    for bad in ["SC=", "SC=4294967296", "SC=xgg", "SC=-1"] {
        assert_eq!(bad.parse::<Service>(), Err(ServiceError::Form), "{bad}");
    }
    for bad in ["SC:", "SC:fghij", "SC:a b", "SC:é", ""] {
        assert_eq!(bad.parse::<Service>(), Err(ServiceError::Text), "{bad}");
    }
}

/// Scenarios write text or a number, and get text back.
#[test]
fn in_a_scenario() {
    let read = |json: &str| serde_json::from_str::<Service>(json);
    assert_eq!(read("\"SC:RTPV\"").unwrap(), Service::RTP_VIDEO);
    assert_eq!(read("1381257281").unwrap(), Service::RTP_AUDIO);
    assert!(read("4294967295").is_err() && read("-3").is_err() && read("\"SC:toolong\"").is_err());
    assert_eq!(serde_json::to_string(&Service::RTP_AUDIO).unwrap(), "\"SC:RTPA\"");
}

/// §2.2: the Request's code must be the listener's; the Response repeats it.
#[test]
fn the_code_decides() {
    let config = Config { service: "SC:fdpz".parse().unwrap(), ..plain() };
    let mut alone = Alone::listener(&config);
    let answer = alone.arrive(Kind::Request { service: Service::RTP_AUDIO.0 }, &[]);
    assert_eq!(reset(&answer).0, ResetCode::BAD_SERVICE_CODE);
    let answer = alone.arrive(Kind::Request { service: 1_717_858_426 }, &[]);
    let Kind::Response { service, .. } = answer[0].kind else { panic!("{answer:?}") };
    assert_eq!(service, 1_717_858_426);
    let mut pair = Pair::of(&config, &plain());
    pair.input(Client, Input::Open);
    pair.drive_for(ms(300));
    assert_eq!(pair.client.life(), [Event::Reset]);
    assert_eq!(pair.kinds(), [(Client, REQUEST), (Server, RESET)]);
}
