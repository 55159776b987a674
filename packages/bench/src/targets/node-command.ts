import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { RunError } from '../exit-codes.js'

/**
 * The command that starts this Node for a peer.
 * @param root Folder with a newer C library than the machine's, as `peer-root.mjs` makes it; empty: the machine's.
 * @throws {RunError} when it has none.
 */
export function nodeCommand(root = process.env.WEBMQ_BENCH_PEER_ROOT ?? ''): readonly [string, ...string[]] {
  if (root === '') return [process.execPath]
  const libraries = resolve(root, 'usr', 'lib')
  const [folder] = existsSync(libraries) ? readdirSync(libraries).filter((name) => name.endsWith('-linux-gnu')) : []
  const loader = folder && readdirSync(join(libraries, folder)).find((name) => name.startsWith('ld-linux-'))
  if (!folder || !loader) throw new RunError(`WEBMQ_BENCH_PEER_ROOT has no C library: ${root}`)
  return [join(libraries, folder, loader), '--library-path', join(libraries, folder), process.execPath]
}
