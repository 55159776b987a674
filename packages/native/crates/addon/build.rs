//! Lets the linker leave the symbols that Node provides.

fn main() {
    napi_build::setup();
}
