//! Access control.

use super::*;

const ROUTE: &str = r#"{"prefix":"/a","face_id":257}"#;

async fn put_route(scene: &Scene, headers: &[(&str, &str)]) -> Answer {
    scene.send(Method::PUT, "/api/v1/routes", headers, ROUTE).await
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn changes_need_the_token_and_looking_does_not() {
    run(async {
        let scene = Scene::new();
        assert_eq!(scene.get("/faces").await.status, StatusCode::OK);
        let wrong_last = format!("Bearer {}0", &TOKEN[..TOKEN.len() - 1]);
        let short = format!("Bearer {}", &TOKEN[1..]);
        let long = format!("Bearer {TOKEN}0");
        let basic = format!("Basic {TOKEN}");
        let refused = [
            None,
            Some(""),
            Some("Bearer"),
            Some("Bearer "),
            Some(TOKEN),
            Some(&*wrong_last),
            Some(&*short),
            Some(&*long),
            Some(&*basic),
        ];
        for authorization in refused {
            let headers: Vec<_> = authorization.iter().map(|value| ("authorization", *value)).chain([JSON]).collect();
            let answer = put_route(&scene, &headers).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{authorization:?}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"namehop\"");
            assert!(answer.error().contains("token"));
        }
        let right = format!("bearer {TOKEN}");
        let twice = [("authorization", &*right), ("authorization", &*right), JSON];
        assert_eq!(put_route(&scene, &twice).await.status, StatusCode::UNAUTHORIZED);
        assert!(scene.changes().is_empty());
        assert_eq!(put_route(&scene, &[("authorization", &right), JSON]).await.status, StatusCode::OK);
        assert_eq!(scene.changes(), ["route /a 257 0"]);
        // A given token is checked even if none is required.
        let looking = scene.send(Method::GET, "/api/v1/cs", &[("authorization", "Bearer wrong")], "").await;
        assert_eq!(looking.status, StatusCode::UNAUTHORIZED);
    });
}

#[test]
fn beyond_loopback_looking_needs_the_token_too() {
    run(async {
        let scene = Scene::with(Some(ApiToken::new(TOKEN)), true);
        let right = format!("Bearer {TOKEN}");
        for path in ["/status", "/faces", "/fib", "/openapi.json", "/nowhere"] {
            assert_eq!(scene.get(path).await.status, StatusCode::UNAUTHORIZED, "{path}");
            let path = format!("/api/v1{path}");
            let head = scene.send(Method::HEAD, &path, &[], "").await;
            assert_eq!(head.status, StatusCode::UNAUTHORIZED, "{path}");
            let answer = scene.send(Method::GET, &path, &[("authorization", &right)], "").await;
            assert_ne!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        }
    });
}

#[test]
fn through_a_proxy_reading_needs_the_token_too() {
    run(async {
        let scene = Scene::new();
        let right = format!("Bearer {TOKEN}");
        let authorization = ("authorization", &*right);
        for shown in [
            ("forwarded", "for=192.0.2.1"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-real-ip", "192.0.2.1"),
            ("via", "1.1 proxy"),
            ("host", "router.example"),
            ("host", "192.0.2.1"),
        ] {
            let refused = scene.send(Method::GET, "/api/v1/faces", &[shown], "").await;
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{shown:?}");
            let answer = scene.send(Method::GET, "/api/v1/faces", &[shown, authorization], "").await;
            assert_eq!(answer.status, StatusCode::OK, "{shown:?}");
        }
    });
}

#[test]
fn without_a_token_nothing_can_be_changed() {
    run(async {
        let scene = Scene::with(None, false);
        assert_eq!(scene.get("/status").await.status, StatusCode::OK);
        for headers in [&[JSON][..], &[JSON, ("authorization", "Bearer ")], &[JSON, ("authorization", "Bearer x")]] {
            let answer = put_route(&scene, headers).await;
            assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
            assert!(answer.json()["hint"].as_str().expect("a hint").contains("token_file"));
        }
        assert!(scene.changes().is_empty());
    });
}

#[test]
fn pages_of_other_sites_are_refused_with_and_without_token() {
    run(async {
        let scene = Scene::new();
        let right = format!("Bearer {TOKEN}");
        let others = [
            ("origin", "http://evil.example"),
            ("origin", "https://evil.example:9697"),
            ("origin", "http://localhost:9698"),
            ("origin", "http://localhost"),
            ("origin", "http://evil.example/localhost:9697"),
            ("origin", "null"),
            ("origin", ""),
            ("origin", "file://localhost:9697"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "anything"),
        ];
        for other in others {
            let looking = scene.send(Method::GET, "/api/v1/faces", &[other], "").await;
            assert_eq!(looking.status, StatusCode::FORBIDDEN, "{other:?}");
            let headers = [("authorization", &*right), JSON, other];
            assert_eq!(put_route(&scene, &headers).await.status, StatusCode::FORBIDDEN, "{other:?}");
            let both = [("origin", "http://localhost:9697"), other];
            let doubled = scene.send(Method::GET, "/api/v1/faces", &both, "").await;
            assert_eq!(doubled.status, StatusCode::FORBIDDEN, "{other:?}");
        }
        assert!(scene.changes().is_empty());
        for own in [("origin", "http://localhost:9697"), ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none")]
        {
            let headers = [("authorization", &*right), JSON, own];
            let answer = put_route(&scene, &headers).await;
            assert_eq!(answer.status, StatusCode::OK, "{own:?}");
            // No page of another site may read an answer, and no cache keeps it.
            assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
            assert_eq!(
                (&answer.headers["cache-control"], &answer.headers["x-content-type-options"]),
                (&"no-store".parse().unwrap(), &"nosniff".parse().unwrap())
            );
        }
        // The preflight request that a browser sends before such a request from a page of another site.
        let preflight = [("origin", "http://evil.example"), ("access-control-request-method", "PUT")];
        let answer = scene.send(Method::OPTIONS, "/api/v1/routes", &preflight, "").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
    });
}

#[test]
fn what_a_form_in_a_page_can_send_changes_nothing() {
    run(async {
        let scene = Scene::new();
        let right = format!("Bearer {TOKEN}");
        for content_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonx",
            "",
        ] {
            let headers = [("authorization", &*right), ("content-type", content_type)];
            let answer =
                scene.send(Method::POST, "/api/v1/faces", &headers, r#"{"uri":"udp4://192.0.2.9:6363"}"#).await;
            assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type}");
            assert!(answer.error().contains("application/json"));
            let answer = scene.send(Method::POST, "/api/v1/strategies/loaded", &headers, "x").await;
            assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type}");
        }
        assert!(scene.changes().is_empty());
        let headers = [("authorization", &*right), ("content-type", "Application/JSON; charset=utf-8")];
        let answer = scene.send(Method::POST, "/api/v1/faces", &headers, r#"{"uri":"udp4://192.0.2.9:6363"}"#).await;
        assert_eq!(answer.status, StatusCode::CREATED);
    });
}
