/** A Cargo manifest with another version of the workspace or the package. */
export function withVersion(manifest, version) {
  return manifest.replace(/^(\[(?:workspace\.)?package\]\n(?:(?!\[).*\n)*?version = )"[^"]+"/m, `$1"${version}"`)
}

/** A Cargo lock file with another version of our own crates: those without a source. */
export function withVersions(lock, version) {
  return lock.replaceAll(/^(name = "webmq-[\w-]+"\nversion = )"[^"]+"(?=\n(?!source))/gm, `$1"${version}"`)
}
