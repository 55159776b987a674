import path from 'node:path'
import { ROOT } from '../../scripts/lib/steps.mjs'
import { readJson } from './programs.mjs'

const MANIFESTS = ['server', 'client'].map((name) => readJson(path.join(ROOT, 'packages', name, 'package.json')))

/**
 * The versions of optional peers that the packages are played with.
 * @type {ReadonlyMap<string, { readonly range: string, readonly oldest: string, readonly newest: string }>} `newest`: that
 *   of all other tests.
 */
export const PEERS = new Map(
  MANIFESTS.flatMap(({ supportedPeers, devDependencies }) =>
    Object.entries(supportedPeers).map(([name, range]) => [
      name,
      { range, oldest: range.match(/^>=(\S+)/)[1], newest: devDependencies[name] },
    ]),
  ),
)
