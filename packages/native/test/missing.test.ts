import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { missingReason } from '../missing-reason.js'
import { addonFileName, PLATFORMS, packageName, platformName, thisSystem } from '../platform.js'

const NATIVE = fileURLToPath(new URL('..', import.meta.url))
const GLIBC = { platform: 'linux', arch: 'x64', glibcVersion: '2.36' }
const MUSL = { platform: 'linux', arch: 'arm64' }
const FOUND = { system: GLIBC, version: '1.2.3', isCheckout: false, otherPackages: [] }

describe('the platform', () => {
  it.each([
    [{ platform: 'linux', arch: 'x64', glibcVersion: '2.17' }, 'linux-x64-gnu'],
    [{ platform: 'linux', arch: 'x64' }, 'linux-x64-musl'],
    [{ platform: 'linux', arch: 'arm64', glibcVersion: '2.36' }, 'linux-arm64-gnu'],
    [{ platform: 'linux', arch: 'arm64' }, 'linux-arm64-musl'],
    [{ platform: 'darwin', arch: 'x64' }, 'darwin-x64'],
    [{ platform: 'darwin', arch: 'arm64' }, 'darwin-arm64'],
    [{ platform: 'linux', arch: 'riscv64', glibcVersion: '2.36' }, undefined],
    [{ platform: 'win32', arch: 'x64' }, undefined],
    [{ platform: 'freebsd', arch: 'x64' }, undefined],
  ])('of %j is %s', (system, name) => {
    expect(platformName(system)).toBe(name)
  })

  it('has a name for each that the engine is built for', () => {
    expect(PLATFORMS).toHaveLength(6)
    expect(PLATFORMS).toContain(platformName({ platform: 'darwin', arch: 'arm64' }))
  })

  it('of this machine is found without changing the report of others', () => {
    const setting = () => Reflect.get(process.report, 'excludeNetwork')
    const before = setting()
    expect(thisSystem()).toMatchObject({ platform: process.platform, arch: process.arch })
    expect(setting()).toBe(before)
  })
})

describe('the reason why there is no engine', () => {
  it.each([
    [
      'Windows',
      { ...FOUND, system: { platform: 'win32', arch: 'x64' } },
      'there is no native engine for Windows on x64',
    ],
    [
      'a processor without a build',
      { ...FOUND, system: { platform: 'linux', arch: 'riscv64', glibcVersion: '2.36' } },
      'there is no native engine for Linux on riscv64 with glibc',
    ],
    [
      'a checkout without a build',
      { ...FOUND, isCheckout: true },
      'webmq-native.linux-x64-gnu.node is not built; install Rust from https://rustup.rs and run `npm run build`',
    ],
    [
      '--omit=optional',
      FOUND,
      'webmq-native-linux-x64-gnu is not installed, as with `--omit=optional` or a lock file of another system; ' +
        'run `npm install webmq-native-linux-x64-gnu@1.2.3`',
    ],
    [
      'macOS without its package',
      { ...FOUND, system: { platform: 'darwin', arch: 'arm64' } },
      'webmq-native-darwin-arm64 is not installed, as with `--omit=optional` or a lock file of another system; ' +
        'run `npm install webmq-native-darwin-arm64@1.2.3`',
    ],
    [
      'a node_modules of another libc and processor',
      { ...FOUND, system: MUSL, otherPackages: ['webmq-native-linux-x64-gnu'] },
      'node_modules has webmq-native-linux-x64-gnu, but this is Linux on arm64 with musl and needs ' +
        'webmq-native-linux-arm64-musl; delete node_modules and install on the system that runs it',
    ],
    [
      'a package of another version',
      { ...FOUND, installedVersion: '1.2.2' },
      'webmq-native-linux-x64-gnu is 1.2.2 but webmq-native is 1.2.3; run `npm install webmq-native-linux-x64-gnu@1.2.3`',
    ],
    [
      'an older glibc',
      { ...FOUND, loadError: new Error("/lib/libc.so.6: version `GLIBC_2.38' not found (required by x.node)") },
      'webmq-native.linux-x64-gnu.node does not load: it needs glibc 2.38 or newer, and this system has 2.36; ' +
        'use a newer system, or build it here',
    ],
    [
      'an addon of musl',
      { ...FOUND, loadError: new Error('libc.musl-x86_64.so.1: cannot open shared object file\nRequire stack:') },
      'webmq-native.linux-x64-gnu.node does not load: it is of another system (libc.musl-x86_64.so.1: cannot open ' +
        'shared object file); delete node_modules and install on the system that runs it',
    ],
    [
      'anything else',
      { ...FOUND, loadError: new Error('cannot allocate memory in static TLS block') },
      'webmq-native.linux-x64-gnu.node does not load: cannot allocate memory in static TLS block',
    ],
  ])('names %s', (_, findings, reason) => {
    expect(missingReason(findings)).toBe(reason)
  })
})

describe.runIf(platformName(thisSystem()) !== undefined)('the loader', () => {
  const platform = platformName(thisSystem()) ?? ''
  const addon = process.env.WEBMQ_NATIVE_ADDON ?? join(NATIVE, addonFileName(platform))

  it('takes the package of this platform', () => {
    const { load, addPackage } = installed()
    addPackage(packageName(platform), addon)
    expect(load()).toBe('function')
  })

  it('says with a code, a reason and a way out that no package is there', () => {
    const { load } = installed()
    expect(JSON.parse(load())).toEqual({
      code: 'E_TRANSPORT_MISSING',
      message: expect.stringMatching(/^(webmq-native-.* is not installed.*); or use the ws transport$/),
      reason: expect.stringContaining(`run \`npm install ${packageName(platform)}@`),
    })
  })

  it('names packages of other platforms that it found', () => {
    const { load, addPackage } = installed()
    const other = packageName(PLATFORMS.find((name) => name !== platform) ?? '')
    addPackage(other, addon)
    expect(JSON.parse(load()).reason).toContain(`node_modules has ${other}`)
  })

  it('refuses a package of another version', () => {
    const { load, addPackage } = installed()
    addPackage(packageName(platform), addon, '0.0.1')
    expect(JSON.parse(load()).reason).toContain(`${packageName(platform)} is 0.0.1 but webmq-native is `)
  })

  it('says why a file is no addon', () => {
    const { load, addPackage } = installed()
    addPackage(packageName(platform), join(NATIVE, 'index.js'))
    expect(JSON.parse(load()).reason).toContain(`${addonFileName(platform)} does not load: `)
  })

  it('prefers the build of a checkout, and asks for one', () => {
    const { load, folder } = installed()
    writeFileSync(join(folder, 'Cargo.toml'), '')
    expect(JSON.parse(load()).reason).toContain('is not built; install Rust')
    cpSync(addon, join(folder, addonFileName(platform)))
    expect(load()).toBe('function')
  })

  it('takes the addon that the environment names, whatever else is there', () => {
    const { load, folder, addPackage } = installed()
    expect(load({ WEBMQ_NATIVE_ADDON: addon })).toBe('function')
    addPackage(packageName(platform), addon)
    const missing = join(folder, 'missing.node')
    expect(JSON.parse(load({ WEBMQ_NATIVE_ADDON: missing })).reason).toContain('does not load: Cannot find module')
  })
})

/** The files of the package in a `node_modules` of their own, and what another process says when it loads them. */
function installed() {
  const root = mkdtempSync(join(tmpdir(), 'webmq-native-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  const modules = join(root, 'node_modules')
  const folder = join(modules, 'webmq-native')
  const manifest: { version: string; files: string[] } = JSON.parse(readFileSync(join(NATIVE, 'package.json'), 'utf8'))
  for (const file of ['package.json', ...manifest.files]) cpSync(join(NATIVE, file), join(folder, file))
  const addPackage = (name: string, addonPath: string, version = manifest.version) => {
    const target = join(modules, name)
    mkdirSync(target)
    const main = addonFileName(name.slice('webmq-native-'.length))
    writeFileSync(join(target, 'package.json'), JSON.stringify({ name, version, main }))
    cpSync(addonPath, join(target, main))
  }
  const load = (named: NodeJS.ProcessEnv = {}) => {
    const program = `import { loadNativeEngine } from ${JSON.stringify(pathToFileURL(join(folder, 'index.js')))}
      try { console.log(typeof loadNativeEngine()) }
      catch ({ code, message, reason }) { console.log(JSON.stringify({ code, message, reason })) }`
    const { WEBMQ_NATIVE_ADDON: _ofThisRun, ...others } = process.env
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      env: { ...others, ...named },
    })
    return stdout.trim() || stderr
  }
  return { folder, addPackage, load }
}
