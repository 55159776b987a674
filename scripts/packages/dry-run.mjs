import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { print, step } from '../lib/steps.mjs'
import { stageRelease } from '../release/stage.mjs'
import { runCheck } from './check.mjs'
import { bundleChecks } from './checks/bundles.mjs'
import { clientChecks } from './checks/client.mjs'
import { fastChecks } from './checks/fast.mjs'
import { managerChecks } from './checks/managers.mjs'
import { moduleChecks } from './checks/modules.mjs'
import { serverChecks, startServer } from './checks/server.mjs'
import { nodeOf, readJson, systemPrograms } from './programs.mjs'
import { createProject } from './project.mjs'
import { startRegistry } from './registry.mjs'
import { measureInstalls } from './sizes.mjs'

const NODES = [20, 22, 24]
/** So that nobody mistakes it for a release. */
const VERSION_SUFFIX = '-dry.1'

/**
 * Publishes every package to a registry of its own on this machine, and uses them as a user would.
 * @param {{ isFast: boolean, only?: RegExp, wantsSizes?: boolean }} options `isFast`: the checks of `npm test`, with the running Node.
 * @returns {Promise<{ results: import('./check.mjs').Result[], sizes: object[], packed: object[] }>}
 */
export async function dryRun({ isFast, only = /./, wantsSizes = !isFast }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-packages-'))
  const registry = await step('Starting a local registry', () => startRegistry(path.join(folder, 'registry')))
  try {
    const staged = await step('Publishing every package to it', () => publishAll(registry, path.join(folder, 'staged')))
    const nodes = isFast ? [majorOf(process.versions.node)] : NODES
    const links = path.join(folder, 'links')
    const system = systemPrograms(path.join(links, 'system'))
    const programs = new Map()
    for (const major of nodes) programs.set(major, (await nodeOf(major, links)).folder)
    const newestNode = nodes.at(-1)

    const newProjectOf =
      (signal) =>
      (name, { node = newestNode, npmrc = '' } = {}) =>
        createProject({
          parent: folder,
          name,
          npmrc: `${registry.npmrc}\n${npmrc}`,
          path: [programs.get(node), system],
          cache: path.join(folder, 'cache'),
          signal,
        })
    const hasEngine = staged.some(({ name }) => name.startsWith('webmq-native-'))
    const engine = hasEngine ? 'native' : 'ws'
    const never = new AbortController()

    const first = newProjectOf(never.signal)('server')
    await step('Installing the server for the clients', () => first.run('npm', 'install', 'webmq-server'))
    const server = await startServer(first)
    const contextOf = (signal) => ({
      newProject: newProjectOf(signal),
      registry,
      server,
      serverProject: first,
      engine,
      newestNode,
    })

    const checks = isFast ? fastChecks : allChecks(nodes)
    const chosen = checks.filter((check) => only.test(check.name))
    const results = []
    print(`▸ Trying ${chosen.length} ways to use them`)
    for (const check of chosen) results.push(await runCheck(check, contextOf))
    await server.stop()
    const sizes = wantsSizes
      ? await step('Measuring installations', () => measureInstalls(newProjectOf(never.signal)))
      : []
    never.abort()
    return { results, sizes, packed: staged }
  } finally {
    await registry.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

const allChecks = (nodes) => [
  ...serverChecks(nodes),
  ...clientChecks(nodes),
  ...moduleChecks(nodes),
  ...bundleChecks,
  ...managerChecks,
]

async function publishAll(registry, folder) {
  const version = `${readJson(new URL('../../packages/server/package.json', import.meta.url)).version}${VERSION_SUFFIX}`
  const staged = stageRelease({ folder, version, allPlatforms: false })
  await registry.publishAll(staged, folder)
  return staged
}

const majorOf = (version) => Number(version.split('.')[0])
