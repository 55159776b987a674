import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { addonFileName, platformName, thisSystem } from '../../packages/native/platform.js'
import { must, print, ROOT, run, StepError, sideBySide, step } from './steps.mjs'

export const PNPM = 'pnpm@10.34.9'
/** TypeScript 7 takes a fifth of the time of 6, which is there for the tools that use the compiler as a library. */
export const TSC = path.join('node_modules', 'typescript-7', 'bin', 'tsc')
/** The oldest Node that the packages support, as in their `engines`. */
const MIN_NODE = [20, 19]
const HOW_TO_GET_RUST = 'install Rust from https://rustup.rs and try again.'
const WITHOUT_CARGO = `There is no working cargo: the server takes an engine that is already here, or the slower ws transport. To build the engine, ${HOW_TO_GET_RUST}`

/** Installs what is missing and builds every package; without cargo, all but the engine. Cheap when nothing has changed. */
export async function build() {
  const hasCargo = await findCargo()
  await installPackages()
  if (!hasCargo) print(WITHOUT_CARGO)
  await sideBySide(...(hasCargo ? [buildNative()] : []), compileTypeScript())
}

const TARGET = path.resolve(ROOT, process.env.CARGO_TARGET_DIR ?? 'target')
const CARGO_WORKSPACE = 'packages/native/Cargo.toml'

/** Environment of the tests: the programs that {@link beginBuildForTests} builds, in the profile of the Rust tests. */
export const TEST_PROGRAMS = {
  WEBMQ_NATIVE_ADDON: path.join(ROOT, 'packages', 'native', 'dev', addonFileName(platformName(thisSystem()))),
  WEBMQ_LOADGEN: path.join(TARGET, 'debug', 'webmq-loadgen'),
}

/**
 * Begins to do the same, and to build the load generator and everything else that the tests need. What is in Rust is
 * built as for its own tests: that is quicker, and checks more when it runs.
 * @param {() => Promise<void>} find Gets the rest, for which the packages must be there; cargo builds meanwhile.
 * @returns {Promise<{ compiled: Promise<void>, built: Promise<unknown> }>} `compiled`: the TypeScript is. `built`: all is.
 */
export async function beginBuildForTests(find) {
  if (!(await findCargo())) {
    throw new StepError(`The tests need Rust, but no working cargo was found: ${HOW_TO_GET_RUST}`)
  }
  await installPackages()
  const compiled = compileTypeScript()
  const rustBuilt = buildNative('--dev').then(buildLoadgen)
  return { compiled, built: sideBySide(rustBuilt, compiled.then(find)) }
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < MIN_NODE[0] || (major === MIN_NODE[0] && minor < MIN_NODE[1])) {
    throw new StepError(`WebMQ needs Node.js ${MIN_NODE.join('.')} or newer; this is ${process.version}.`)
  }
}

async function findCargo() {
  const { exitCode } = await run('cargo', ['--version'], { log: 'cargo-version' })
  return exitCode === 0
}

/** Installs the npm packages, unless they are those of the lock file. */
export async function installPackages() {
  checkNode()
  const stamp = path.join(ROOT, 'node_modules', '.webmq-installed')
  const wanted = hashOf([
    'pnpm-lock.yaml',
    'pnpm-workspace.yaml',
    'package.json',
    'site/package.json',
    ...packageManifests(),
  ])
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  await step('Installing npm packages', () =>
    must('The npm packages could not be installed.', 'npx', ['--yes', PNPM, 'install', '--frozen-lockfile'], {
      log: 'install',
      env: { ...process.env, CI: 'true' },
    }),
  )
  writeFileSync(stamp, wanted)
}

async function compileTypeScript() {
  await step('Compiling TypeScript', () =>
    must('TypeScript did not compile.', process.execPath, [TSC, '-b'], { log: 'tsc' }),
  )
  await import('../../packages/server/copy-files.mjs')
}

async function buildNative(...args) {
  await step('Building the native engine (the first time takes a minute or two)', () =>
    must('The native engine did not build.', process.execPath, ['packages/native/build.js', ...args], {
      log: 'native',
    }),
  )
}

async function buildLoadgen() {
  await step('Building the load generator', () =>
    must(
      'The load generator did not build.',
      'cargo',
      ['build', '--locked', '--manifest-path', CARGO_WORKSPACE, '--package', 'webmq-loadgen'],
      {
        log: 'loadgen',
      },
    ),
  )
}

function packageManifests() {
  return ['packages', 'examples'].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder))
      .map((name) => `${folder}/${name}/package.json`)
      .filter((file) => existsSync(path.join(ROOT, file))),
  )
}

function hashOf(files) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(file).update(readFileSync(path.join(ROOT, file)))
  return hash.digest('hex')
}
