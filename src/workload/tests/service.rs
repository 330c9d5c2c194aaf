//! Ports of the Kubernetes Service.

use super::*;

fn ports(spec: Value) -> Vec<(String, u64, String)> {
    let workload = build(&owner("chat", &NONE), &rendered(spec)).unwrap();
    let ports = workload.service().object["spec"]["ports"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    ports
        .iter()
        .map(|port| {
            assert_eq!(port["port"], port["targetPort"]);
            (text(&port["name"]), port["port"].as_u64().unwrap(), text(&port["protocol"]))
        })
        .collect()
}

fn pod(containers: &Value, init_containers: &Value) -> Value {
    let mut spec = minimal();
    let main = spec["template"]["spec"]["containers"][0].clone();
    for (list, wanted) in [("containers", containers), ("initContainers", init_containers)] {
        let filled: Vec<Value> = wanted
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
            .map(|(index, fields)| {
                let mut container = main.clone();
                container["name"] = json!(format!("{list}-{index}"));
                container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
                container
            })
            .collect();
        spec["template"]["spec"][list] = json!(filled);
    }
    spec
}

#[test]
fn declared_ports_become_ports_of_the_service() {
    let named = |name: &str, number: u16| json!({"name": name, "containerPort": number});
    let port = |number: u16| json!({"containerPort": number});
    let udp = |number: u16| json!({"containerPort": number, "protocol": "UDP"});
    let main = |ports: Value| pod(&json!([{"ports": ports}]), &json!([]));
    let cases = [
        ("none is declared", main(json!([])), vec![("http", 8000, "TCP")]),
        ("with names", main(json!([named("api", 80), named("metrics", 90)])), vec![("api", 80, "TCP"), ("metrics", 90, "TCP")]),
        ("without a name", main(json!([port(80)])), vec![("port-80", 80, "TCP")]),
        (
            "containers come before sidecars, and init containers that end do not come",
            pod(
                &json!([{"ports": [named("a", 1)]}, {"ports": [named("b", 2)]}]),
                &json!([{"restartPolicy": "Always", "ports": [named("c", 3)]}, {"ports": [named("d", 4)]}]),
            ),
            vec![("a", 1, "TCP"), ("b", 2, "TCP"), ("c", 3, "TCP")],
        ),
        (
            "the first of a number and protocol wins",
            pod(&json!([{"ports": [named("http", 8000)]}]), &json!([{"restartPolicy": "Always", "ports": [named("proxy", 8000)]}])),
            vec![("http", 8000, "TCP")],
        ),
        ("one number by two protocols", main(json!([port(53), udp(53)])), vec![("port-53", 53, "TCP"), ("port-53-udp", 53, "UDP")]),
        (
            "a name that is taken",
            pod(&json!([{"ports": [named("http", 80)]}, {"ports": [named("http", 81)]}]), &json!([])),
            vec![("http", 80, "TCP"), ("port-81-tcp", 81, "TCP")],
        ),
        (
            "names that no port may have",
            main(json!([named("HTTP", 80), named("a--b", 81), named("80", 82), named("longer-than-fifteen", 83)])),
            vec![("port-80-tcp", 80, "TCP"), ("port-81-tcp", 81, "TCP"), ("port-82-tcp", 82, "TCP"), ("port-83-tcp", 83, "TCP")],
        ),
        (
            "a made name that is taken too",
            main(json!([named("port-53-udp", 1), port(53), udp(53)])),
            vec![("port-53-udp", 1, "TCP"), ("port-53", 53, "TCP"), ("port-53-udp-2", 53, "UDP")],
        ),
        ("numbers that no pod can have", main(json!([port(0), {"containerPort": 70_000}, port(80)])), vec![("port-80", 80, "TCP")]),
    ];
    for (what, spec, expected) in cases {
        let expected: Vec<_> =
            expected.into_iter().map(|(name, number, protocol)| (name.to_owned(), number, protocol.to_owned())).collect();
        assert_eq!(ports(spec), expected, "{what}");
    }
}

#[test]
fn the_ports_are_those_of_the_pods_behind_the_service() {
    let with_port = |number: u16| json!({"spec": {"containers": [{"name": "main", "image": "i", "ports": [{"containerPort": number}, {"containerPort": 9}]}]}});
    for (target, expected) in [("leader", vec![1, 9]), ("workers", vec![2, 9]), ("all", vec![1, 9, 2]), ("auto", vec![1, 9])] {
        let spec = json!({
            "parallelism": {"pipeline": 2}, "service": {"target": target}, "template": with_port(1), "workerTemplate": with_port(2),
        });
        assert_eq!(ports(spec).into_iter().map(|(_, number, _)| number).collect::<Vec<_>>(), expected, "{target}");
    }
}

#[test]
fn the_service_bears_the_marks_of_the_workload() {
    let workload = build(&owner("chat", &NONE), &rendered(group(2))).unwrap();
    let (object, service) = (workload.manifest(1), &workload.service().object);
    assert_eq!(service["metadata"]["labels"], object["metadata"]["labels"]);
    assert_eq!(service["metadata"]["annotations"], object["metadata"]["annotations"]);
    assert_eq!(service["metadata"]["name"], workload.service().name.as_str());
    assert_eq!(service["spec"]["selector"], json!({"mif.moreh.io/inferenceservice": "chat"}));
}
