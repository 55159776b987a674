import { execSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT, StepError } from '../lib/steps.mjs'
import { builtFiles, stagePlatformPackage, WITH_PLATFORM_PACKAGES } from './platform-packages.mjs'

/** Fields that only the repository needs. Without scripts, nothing can run when a package is installed. */
const DROPPED_FIELDS = ['devDependencies', 'scripts']
const DEPENDENCY_FIELDS = ['dependencies', 'optionalDependencies', 'peerDependencies']

/**
 * A package that is ready to publish from its folder.
 * @typedef {{ name: string, version: string, folder: string }} Staged
 */

/**
 * Makes a folder of every public package as it is published: the versions of its siblings instead of `workspace:`, and
 * the packages of the platforms as optional dependencies. The repository stays as it is. Build first.
 * @param {{ folder: string, version?: string, isRelease: boolean }} options `folder`: emptied. `version`: instead of
 *   the packages' own. `isRelease`: then every platform must be built; if not, what is not built is left out.
 * @returns {Staged[]} in the order in which they can be published: a package comes after those that it needs
 * @throws {StepError} when something is not built.
 */
export function stageRelease({ folder, version, isRelease }) {
  rmSync(folder, { recursive: true, force: true })
  const manifests = workspaceManifests().map((manifest) => ({ ...manifest, version: version ?? manifest.version }))
  const versions = new Map(manifests.map(({ name, version: own }) => [name, own]))
  const staged = []
  for (const manifest of manifests.filter((each) => each.private !== true)) {
    const optional = {}
    if (manifest.name in WITH_PLATFORM_PACKAGES) {
      for (const [platform, source] of filesOf(manifest.name, isRelease)) {
        const name = `${manifest.name}-${platform}`
        stagePlatformPackage(manifest, platform, source, path.join(folder, name))
        staged.push({ name, version: manifest.version, folder: path.join(folder, name) })
        optional[name] = manifest.version
      }
    }
    stagePackage(manifest, optional, versions, path.join(folder, manifest.name))
    staged.push({ name: manifest.name, version: manifest.version, folder: path.join(folder, manifest.name) })
  }
  return inOrder(staged)
}

function workspaceManifests() {
  const folders = readdirSync(path.join(ROOT, 'packages')).map((name) => path.join(ROOT, 'packages', name))
  return folders
    .filter((source) => existsSync(path.join(source, 'package.json')))
    .map((source) => ({ ...readManifest(source), source }))
}

function filesOf(name, isRelease) {
  const { built, missing } = builtFiles(name, !isRelease)
  if (isRelease && missing.length > 0) throw new StepError(`${name} is not built for ${missing.join(', ')}.`)
  return built
}

function stagePackage({ source, ...manifest }, optionalDependencies, versions, target) {
  mkdirSync(target, { recursive: true })
  // It makes files that are packed. The package in the release folder has no scripts.
  const prepack = manifest.scripts?.prepack
  if (prepack !== undefined) execSync(prepack, { cwd: source, stdio: 'pipe' })
  // npm reads the patterns again when it packs; here they only say which files and folders to copy.
  const listed = manifest.files.filter((pattern) => !pattern.startsWith('!')).map((pattern) => pattern.split('/')[0])
  for (const entry of new Set([...listed, 'README.md', 'LICENSE'])) {
    const from = path.join(source, entry)
    if (existsSync(from)) cpSync(from, path.join(target, entry), { recursive: true, filter: isNoBuildFolder })
    else if (listed.includes(entry)) throw new StepError(`${manifest.name} has no ${entry}; build first.`)
  }
  cpSync(path.join(ROOT, 'LICENSE'), path.join(target, 'LICENSE'))
  for (const field of DROPPED_FIELDS) delete manifest[field]
  if (Object.keys(optionalDependencies).length > 0) {
    manifest.optionalDependencies = { ...manifest.optionalDependencies, ...optionalDependencies }
  }
  for (const field of DEPENDENCY_FIELDS) {
    if (manifest[field] !== undefined) manifest[field] = withoutWorkspace(manifest[field], versions)
  }
  writeFileSync(path.join(target, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
}

const isNoBuildFolder = (from) => !/^(target|node_modules)$/.test(path.basename(from))

/** As pnpm does when it publishes: `workspace:*` is the version, `workspace:^` its caret range. */
function withoutWorkspace(dependencies, versions) {
  const entries = Object.entries(dependencies).map(([name, range]) => {
    if (!range.startsWith('workspace:')) return [name, range]
    const wanted = range.slice('workspace:'.length)
    return [name, wanted === '*' ? versions.get(name) : /^[\^~]$/.test(wanted) ? wanted + versions.get(name) : wanted]
  })
  return Object.fromEntries(entries)
}

/** Nobody may get a package whose dependency is not there yet. */
function inOrder(staged) {
  const byName = new Map(staged.map((each) => [each.name, each]))
  const ordered = new Set()
  const visit = (each) => {
    if (ordered.has(each)) return
    const { dependencies, optionalDependencies } = readManifest(each.folder)
    // Not the peers: all are optional, and the server and a transport name each other.
    const needed = Object.keys({ ...dependencies, ...optionalDependencies })
    for (const name of needed) if (byName.has(name)) visit(byName.get(name))
    ordered.add(each)
  }
  staged.forEach(visit)
  return [...ordered]
}

function readManifest(folder) {
  return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
}
