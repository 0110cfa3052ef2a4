#[test]
fn a_node_alone_keeps_its_value() {
    ml_core::fault::point("tggn-integ");

    assert_eq!(vec![3.0], ml::tggn::forward(&[2.0]));
}
