import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { must, ROOT } from '../../scripts/lib/steps.mjs'
import { withoutNpm } from './registry.mjs'

/** Programs of the system that package managers call. Nothing else is on the PATH of a project: no cargo, no git. */
const SYSTEM_PROGRAMS = [
  'sh',
  'env',
  'uname',
  'sed',
  'dirname',
  'basename',
  'cat',
  'ls',
  'mkdir',
  'rm',
  'ln',
  'chmod',
  'cp',
  'mv',
]
const SYSTEM_FOLDERS = ['/bin', '/usr/bin']
const PROGRAM_FOLDER = path.join(ROOT, '.cache', 'programs')

/** What npm installs for the checks, and under which version. Exact, so that a run can be repeated. */
export const TOOL_VERSIONS = {
  pnpm: '10.34.9',
  yarn: '1.22.22',
  '@yarnpkg/cli-dist': '4.18.1',
  typescript: '6.0.3',
  vite: '8.3.8',
  'create-vite': '9.3.0',
  webpack: '5.112.2',
  'webpack-cli': '6.0.1',
  'webpack-dev-server': '5.2.7',
  next: '16.4.6',
  nuxt: '4.5.2',
  ws: '8.23.0',
  bun: '1.4.5',
  deno: '2.9.6',
}

/** A folder with links to {@link SYSTEM_PROGRAMS}. */
export function systemPrograms(folder) {
  mkdirSync(folder, { recursive: true })
  for (const name of SYSTEM_PROGRAMS) {
    const found = SYSTEM_FOLDERS.map((each) => path.join(each, name)).find(existsSync)
    if (found !== undefined) symlinkSync(found, path.join(folder, name))
  }
  return folder
}

/**
 * A folder with `node`, `npm` and `npx` of a major version: the running one if it fits, else from npm's binary packages.
 * @returns {Promise<{ version: string, folder: string }>}
 */
export async function nodeOf(major, links) {
  const folder = path.join(links, `node-${major}`)
  mkdirSync(folder, { recursive: true })
  const isRunning = process.versions.node.split('.')[0] === String(major)
  const node = isRunning ? process.execPath : await installedNode(major)
  const npm = path.dirname(await npmCli())
  symlinkSync(node, path.join(folder, 'node'))
  for (const name of ['npm', 'npx']) symlinkSync(path.join(npm, `${name}-cli.js`), path.join(folder, name))
  const version = await must(`Node ${major} does not run.`, node, ['--version'], { log: 'node-version' })
  return { version: version.trim(), folder }
}

/** Path of the program in a package that npm has installed into the cache, without running its scripts. */
export async function installedProgram(name, version, program) {
  const folder = path.join(PROGRAM_FOLDER, `${name.replace('/', '-')}-${version}`)
  const file = path.join(folder, 'node_modules', name, program)
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path.join(folder, 'package.json'), '{ "private": true }')
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${version}`]
    await must(`${name} cannot be installed.`, 'npm', args, { cwd: folder, env: withoutNpm(), log: 'install-program' })
  }
  if (!existsSync(file)) throw new Error(`${name}@${version} has no ${program}`)
  return file
}

/** The package of a platform: these runtimes bring their program in one, and a script only to link it. */
export function bunProgram() {
  const { platform, arch } = process
  const name = `@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`
  return installedProgram(name, TOOL_VERSIONS.bun, 'bin/bun')
}

export function denoProgram() {
  const { platform, arch } = process
  return installedProgram(
    `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`,
    TOOL_VERSIONS.deno,
    'deno',
  )
}

/** The program of the newest version of a major one. */
export async function installedNode(major) {
  const name = `node-${process.platform}-${process.arch}`
  const output = await must(`${name} cannot be found.`, 'npm', ['view', name, 'versions', '--json'], {
    log: 'node-versions',
  })
  const versions = JSON.parse(output.slice(output.indexOf('['), output.lastIndexOf(']') + 1))
  const newest = versions
    .filter((version) => new RegExp(`^${major}\\.\\d+\\.\\d+$`).test(version))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .at(-1)
  if (newest === undefined) throw new Error(`the registry has no ${name} ${major}`)
  return await installedProgram(name, newest, 'bin/node')
}

/** npm that runs this script, or the one on PATH. */
async function npmCli() {
  const given = process.env.npm_execpath
  if (given?.endsWith('npm-cli.js') && existsSync(given)) return given
  const root = await must('npm is not there.', 'npm', ['root', '--global'], { log: 'npm-root' })
  const file = path.join(root.trim().split('\n').at(-1), 'npm', 'bin', 'npm-cli.js')
  if (!existsSync(file)) throw new Error(`npm is not at ${file}`)
  return file
}

export function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
