import { execFileSync } from 'node:child_process'
import { ROOT } from '../lib/steps.mjs'

const MAX_METADATA_BYTES = 64 << 20

/**
 * What cargo says of a workspace and all its crates.
 * @param {string} manifest relative to the repository
 * @throws when cargo cannot be run.
 */
export function metadataOf(manifest) {
  const args = ['metadata', '--format-version', '1', '--locked', '--manifest-path', manifest]
  return JSON.parse(
    execFileSync('cargo', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: MAX_METADATA_BYTES, stdio: 'pipe' }),
  )
}

/** The program's crates by normal dependencies, on any platform, in the order of their names. */
export function linkedCrates({ packages, resolve }, program) {
  const crateById = new Map(packages.map((each) => [each.id, each]))
  const nodeById = new Map(resolve.nodes.map((node) => [node.id, node]))
  const root = packages.find(({ name, source }) => name === program && source === null)
  const found = new Set([root.id])
  for (const id of found) {
    for (const { pkg, dep_kinds: kinds } of nodeById.get(id).deps) {
      if (kinds.some(({ kind }) => kind === null)) found.add(pkg)
    }
  }
  const crates = [...found].map((id) => crateById.get(id))
  return crates.sort((one, other) => one.name.localeCompare(other.name) || one.version.localeCompare(other.version))
}
