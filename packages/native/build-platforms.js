// Builds the addon for other platforms on this machine, into artifacts/: node build-platforms.js [platform…]
// Without arguments, for all. zig links them and compiles their C, so one Linux machine builds them all.
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { addonFileName, PLATFORMS } from './platform.js'

const here = dirname(fileURLToPath(import.meta.url))
const artifacts = join(here, 'artifacts')

/** glibc of CentOS 7, and the oldest that Rust supports. */
const GLIBC_FLOOR = [2, 17]
/** Node 22 needs this macOS, too. */
const MACOS_FLOOR = '11.0'
/** Why this size: docs/adr/0025-tls-in-the-engine.md. */
const MAX_BYTES = 2_000_000

const TARGETS = {
  'linux-x64-gnu': 'x86_64-unknown-linux-gnu',
  'linux-x64-musl': 'x86_64-unknown-linux-musl',
  'linux-arm64-gnu': 'aarch64-unknown-linux-gnu',
  'linux-arm64-musl': 'aarch64-unknown-linux-musl',
  'darwin-x64': 'x86_64-apple-darwin',
  'darwin-arm64': 'aarch64-apple-darwin',
}

const isGlibc = (platform) => platform.endsWith('-gnu')

/** The program's output; `undefined` when it is missing or fails. */
async function output(program, ...args) {
  try {
    return (await promisify(execFile)(program, args, { cwd: here })).stdout.trim()
  } catch {
    return undefined
  }
}

/** What is missing on this machine, a sentence each. */
async function missingTools(platforms) {
  if ((await output('cargo', '--version')) === undefined) return ['Rust is missing: install it from https://rustup.rs']
  const missing = []
  if ((await output('cargo', 'zigbuild', '--help')) === undefined) {
    missing.push('cargo-zigbuild is missing: pip install cargo-zigbuild, or cargo install cargo-zigbuild')
  }
  const zig = (await output('python3', '-m', 'ziglang', 'version')) ?? (await output('zig', 'version'))
  if (zig === undefined) missing.push('zig is missing: pip install ziglang, or see https://ziglang.org/download')
  for (const target of platforms.map((platform) => TARGETS[platform])) {
    const folder = await output('rustc', '--print', 'target-libdir', '--target', target)
    if (folder === undefined || !existsSync(folder)) {
      missing.push(`Rust has no standard library for ${target}: rustup target add ${target}`)
    }
  }
  return missing
}

/** Flags of the compiler. The paths of this machine are in no addon. */
function rustFlags(platform) {
  const cargoHome = process.env.CARGO_HOME ?? join(homedir(), '.cargo')
  const flags = [`--remap-path-prefix=${cargoHome}/registry/src=crates`, `--remap-path-prefix=${here}=webmq-native`]
  // An addon uses the musl that its Node uses.
  if (platform.endsWith('-musl')) flags.push('-Ctarget-feature=-crt-static')
  return flags.join('\u001f')
}

/** Path of the library that cargo made. */
async function build(platform) {
  const target = isGlibc(platform) ? `${TARGETS[platform]}.${GLIBC_FLOOR.join('.')}` : TARGETS[platform]
  const args = ['zigbuild', '--locked', '--profile', 'prebuilt', '--package', 'webmq-addon', '--target', target]
  const env = { ...process.env, CARGO_ENCODED_RUSTFLAGS: rustFlags(platform), MACOSX_DEPLOYMENT_TARGET: MACOS_FLOOR }
  const cargo = spawn('cargo', [...args, '--message-format', 'json-render-diagnostics'], {
    cwd: here,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve, reject) => cargo.once('error', reject).once('close', resolve))
  let library
  for await (const line of createInterface({ input: cargo.stdout })) {
    const message = JSON.parse(line)
    if (message.reason === 'compiler-artifact' && message.target.name === 'webmq_addon') [library] = message.filenames
  }
  const status = await ended
  if (status !== 0) throw new Error(`cargo zigbuild ended with status ${status}`)
  if (library === undefined) throw new Error('cargo built no library')
  return library
}

/** Throws when a file must not be published. */
function check(platform, content) {
  if (content.length > MAX_BYTES) throw new Error(`${content.length} bytes, at most ${MAX_BYTES} are allowed`)
  const text = content.toString('latin1')
  if (text.includes(here)) throw new Error(`it contains the path ${here}`)
  const hasGlibc = text.includes('GLIBC_')
  if (hasGlibc !== isGlibc(platform)) throw new Error(hasGlibc ? 'it needs glibc' : 'it names no version of glibc')
  // The names of the versions that it needs are strings of the dynamic string table.
  for (const [, version] of text.matchAll(/\0GLIBC_([\d.]+)(?=\0)/g)) {
    const [major, minor] = version.split('.').map(Number)
    if (major > GLIBC_FLOOR[0] || minor > GLIBC_FLOOR[1]) {
      throw new Error(`it needs glibc ${version}, above the floor of ${GLIBC_FLOOR.join('.')}`)
    }
  }
}

const wanted = process.argv.slice(2)
const platforms = wanted.length === 0 ? PLATFORMS : wanted
const unknown = platforms.filter((platform) => !PLATFORMS.includes(platform))
if (unknown.length > 0) {
  console.error(`unknown platform ${unknown.join(', ')}; known are ${PLATFORMS.join(', ')}`)
  process.exit(2)
}
const missing = await missingTools(platforms)
if (missing.length > 0) {
  console.error(missing.join('\n'))
  process.exit(1)
}
await mkdir(artifacts, { recursive: true })
for (const platform of platforms) {
  const artifact = join(artifacts, addonFileName(platform))
  await rm(artifact, { force: true })
  const library = await build(platform)
  const content = await readFile(library)
  try {
    check(platform, content)
  } catch (error) {
    console.error(`${platform}: ${error.message}`)
    process.exitCode = 1
    continue
  }
  await copyFile(library, artifact)
  console.log(`${addonFileName(platform)}: ${content.length.toLocaleString('en-US')} bytes`)
}
