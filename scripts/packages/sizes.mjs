import { lstatSync, readdirSync } from 'node:fs'
import path from 'node:path'

/** What an installation costs a user. */
const INSTALLS = ['webmq-client', 'webmq-server', 'webmq-native']

/**
 * Installs each package alone into an empty project, and measures.
 * @returns {Promise<readonly { name: string, packages: number, bytes: number, seconds: number }[]>} `bytes`: as files on
 *   disk. `seconds`: with the packages in npm's cache.
 */
export async function measureInstalls(newProject, names = INSTALLS) {
  const sizes = []
  for (const name of names) {
    const warm = await newProject('warm')
    await warm.run('npm', 'install', name)
    const project = await newProject('size')
    const startedAtMs = performance.now()
    await project.run('npm', 'install', name)
    const seconds = (performance.now() - startedAtMs) / 1_000
    const modules = path.join(project.folder, 'node_modules')
    sizes.push({ name, packages: countPackages(modules), bytes: bytesOf(modules), seconds })
  }
  return sizes
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
