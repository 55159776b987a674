import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { platformName, thisSystem } from '../../packages/native/platform.js'
import { print, step } from '../../scripts/lib/steps.mjs'
import { stageRelease } from '../../scripts/release/stage.mjs'
import { runCheck } from './check.mjs'
import { benchChecks } from './checks/bench.mjs'
import { brokerChecks } from './checks/brokers.mjs'
import { bundleChecks } from './checks/bundles.mjs'
import { checkerChecks } from './checks/checker.mjs'
import { clientChecks } from './checks/client.mjs'
import { existingAppChecks } from './checks/existing-apps.mjs'
import { fastChecks } from './checks/fast.mjs'
import { firstAppChecks } from './checks/first-app.mjs'
import { frameworkChecks } from './checks/frameworks.mjs'
import { managerChecks } from './checks/managers.mjs'
import { moduleChecks } from './checks/modules.mjs'
import { proxyChecks } from './checks/proxies.mjs'
import { reactNativeChecks } from './checks/react-native.mjs'
import { releaseChecks } from './checks/release.mjs'
import { serverChecks, startServer } from './checks/server.mjs'
import { nodeOf, readJson, systemPrograms } from './programs.mjs'
import { createProject } from './project.mjs'
import { startRegistry } from './registry.mjs'
import { measureInstalls } from './sizes.mjs'

const NODES = [20, 22, 24]
const LIMIT_MS = 60 * 60_000
const FAST_LIMIT_MS = 420_000
/** So that nobody mistakes it for a release. */
const VERSION_SUFFIXES = ['-dry.1', '-dry.2']

/**
 * Publishes every package to a registry of its own on this machine, and uses them as a user would.
 * @param {{ isFast: boolean, only?: RegExp, wantsSizes?: boolean }} options `isFast`: the checks of `npm test`, with the running Node.
 * @returns {Promise<{ results: import('./check.mjs').Result[], sizes: object[], packed: object[] }>}
 */
export async function dryRun({ isFast, only = /./, wantsSizes = !isFast }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-packages-'))
  const registry = await step('Starting a local registry', () => startRegistry(path.join(folder, 'registry')))
  try {
    const staged = await step('Publishing every package to it', () =>
      publishAll(registry, path.join(folder, 'staged'), 0),
    )
    const nodes = isFast ? [majorOf(process.versions.node)] : NODES
    const checks = [...(isFast ? [...fastChecks, ...brokerChecks(nodes)] : allChecks(nodes)), ...releaseChecks].filter(
      (check) => only.test(check.name),
    )
    const newProjectOf = await projects({ folder, registry, nodes })
    const whole = newProjectOf(AbortSignal.timeout(isFast ? FAST_LIMIT_MS : LIMIT_MS))
    const hasPackageOf = (name) => staged.some((each) => each.name === `${name}-${platformName(thisSystem())}`)
    const context = {
      registry,
      staged,
      publishNext: () => publishAll(registry, path.join(folder, 'next'), 1),
      // The transport that `auto` takes here.
      engine: hasPackageOf('webmq-native') ? 'native' : 'ws',
      hasLoadgen: hasPackageOf('webmq-bench'),
      newestNode: nodes.at(-1),
    }
    const results = await runChecks(checks, context, newProjectOf, whole)
    const sizes = wantsSizes ? await step('Measuring installations', () => measureInstalls(whole, registry)) : []
    return { results, sizes, packed: staged }
  } finally {
    await registry.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Makes projects for a signal, with the newest Node unless they ask for another. */
async function projects({ folder, registry, nodes }) {
  const links = path.join(folder, 'links')
  const system = systemPrograms(path.join(links, 'system'))
  const programs = new Map()
  for (const major of nodes) programs.set(major, (await nodeOf(major, links)).folder)
  const cache = path.join(folder, 'cache')
  return (signal) =>
    (name, { node = nodes.at(-1), npmrc = '' } = {}) =>
      createProject({
        parent: folder,
        name,
        npmrc: `${registry.npmrc}\n${npmrc}`,
        path: [programs.get(node), system],
        cache,
        signal,
      })
}

/** Runs the checks one after the other, beside one installed server for all clients. */
async function runChecks(checks, context, newProjectOf, newProject) {
  const serverProject = newProject('server')
  await step('Installing the server for the clients', () => serverProject.run('npm', 'install', 'webmq-server'))
  const server = await startServer(serverProject)
  try {
    print(`▸ Trying ${checks.length} ways to use the packages`)
    const results = []
    for (const check of checks) {
      const contextOf = (signal) => ({ ...context, newProject: newProjectOf(signal), server, serverProject })
      results.push(await runCheck(check, contextOf))
    }
    return results
  } finally {
    await server.stop()
  }
}

const allChecks = (nodes) => [
  ...serverChecks(nodes),
  ...brokerChecks(nodes),
  ...clientChecks(nodes),
  ...existingAppChecks,
  ...moduleChecks(nodes),
  ...bundleChecks,
  ...proxyChecks,
  ...reactNativeChecks,
  ...firstAppChecks,
  ...frameworkChecks,
  ...managerChecks,
  ...benchChecks,
  ...checkerChecks,
]

async function publishAll(registry, folder, turn) {
  const { version: own } = readJson(new URL('../../packages/server/package.json', import.meta.url))
  const version = `${own}${VERSION_SUFFIXES[turn]}`
  const staged = stageRelease({ folder, version, isRelease: false })
  await registry.publishAll(staged)
  return staged
}

const majorOf = (version) => Number(version.split('.')[0])
