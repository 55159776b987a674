//! Lets the linker leave the symbols that Node provides.

fn main() {
    napi_build::setup();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "macos") {
        // Instead of the path on the machine that builds it.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/webmq-native.node");
        // libiconv and libcharset, which nothing uses.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-dead_strip_dylibs");
    }
}
