import { lstatSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { MANAGERS, writeSettings } from './checks/managers.mjs'
import { installedProgram, TOOL_VERSIONS } from './programs.mjs'

/** What an installation costs a user. */
const INSTALLS = ['webmq-client', 'webmq-server', 'webmq-bench', 'webmq-check']

/**
 * Installs each package alone into an empty project with each manager, and measures.
 * @returns {Promise<readonly { name: string, packages: number, bytes: number, seconds: Record<string, number> }[]>}
 *   `packages` and `bytes`: of npm's `node_modules`, as files. `seconds`: by manager, with the packages in its cache.
 */
export async function measureInstalls(newProject, registry) {
  const managers = [{ name: 'npm', install: (project, name) => project.run('npm', 'install', name) }]
  for (const { name: manager, program, add } of MANAGERS) {
    const version = TOOL_VERSIONS[manager]
    const file = await installedProgram(manager, version, program)
    const install = (project, name) => project.run('node', file, ...add, name)
    managers.push({ name: `${path.basename(program, path.extname(program))} ${version.split('.')[0]}`, install })
  }
  const sizes = []
  for (const name of INSTALLS) {
    const size = { name, packages: 0, bytes: 0, seconds: {} }
    for (const manager of managers) {
      const { folder, seconds } = await timeInstall(newProject, registry, manager, name)
      size.seconds[manager.name] = seconds
      if (manager.name !== 'npm') continue
      const modules = path.join(folder, 'node_modules')
      size.packages = countPackages(modules)
      size.bytes = bytesOf(modules)
    }
    sizes.push(size)
  }
  return sizes
}

/** The second of two installations: the first fills the cache. */
async function timeInstall(newProject, registry, { install }, name) {
  const projects = [await newProject('warm'), await newProject('size')]
  let startedAtMs = 0
  for (const project of projects) {
    writeSettings(project, registry)
    startedAtMs = performance.now()
    await install(project, name)
  }
  return { folder: projects[1].folder, seconds: (performance.now() - startedAtMs) / 1_000 }
}

function countPackages(modules) {
  let count = 0
  for (const entry of readdirSync(modules, { withFileTypes: true })) {
    if (!entry.isDirectory() || entry.name.startsWith('.')) continue
    const folder = path.join(modules, entry.name)
    if (entry.name.startsWith('@')) count += countPackages(folder)
    else {
      count++
      const nested = readdirSync(folder).includes('node_modules') ? path.join(folder, 'node_modules') : undefined
      if (nested !== undefined) count += countPackages(nested)
    }
  }
  return count
}

function bytesOf(folder) {
  return readdirSync(folder, { recursive: true }).reduce((sum, file) => {
    const stats = lstatSync(path.join(folder, file))
    return sum + (stats.isFile() ? stats.size : 0)
  }, 0)
}
