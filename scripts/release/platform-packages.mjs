import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { addonFileName, PLATFORMS, platformName, thisSystem } from '../../packages/native/platform.js'
import { ROOT } from '../lib/steps.mjs'
import { noticesOf } from './notices.mjs'

const thisPlatform = platformName(thisSystem())
const NOTICES = 'THIRD-PARTY-LICENSES.txt'

/**
 * Packages that have a part per platform, `<name>-<platform>`: the one file in it, where a release finds it, and where a
 * dry run on this machine may take its own build instead. `crate`: what is linked, by manifest and name.
 */
export const WITH_PLATFORM_PACKAGES = {
  'webmq-native': {
    what: 'native engine of webmq-server',
    platforms: PLATFORMS,
    file: addonFileName,
    isMain: true,
    crate: ['packages/native/Cargo.toml', 'webmq-addon'],
    artifact: (platform) => `packages/native/artifacts/${addonFileName(platform)}`,
    ownBuild: (platform) => process.env.WEBMQ_NATIVE_ADDON ?? `packages/native/${addonFileName(platform)}`,
  },
  'webmq-bench': {
    what: 'load generator of webmq-bench',
    // It needs epoll.
    platforms: PLATFORMS.filter((platform) => platform.startsWith('linux-')),
    file: () => 'webmq-loadgen',
    isMain: false,
    crate: ['packages/native/Cargo.toml', 'webmq-loadgen'],
    artifact: (platform) => `packages/bench/loadgen/artifacts/${platform}/webmq-loadgen`,
    ownBuild: () => process.env.WEBMQ_LOADGEN ?? 'target/release/webmq-loadgen',
  },
}

/**
 * The built file of each platform.
 * @param {boolean} mayBeOwn whether what this machine has built for itself counts; it may need a newer glibc.
 * @returns {{ built: Map<string, string>, missing: string[] }}
 */
export function builtFiles(name, mayBeOwn) {
  const { platforms, artifact, ownBuild } = WITH_PLATFORM_PACKAGES[name]
  const built = new Map()
  for (const platform of platforms) {
    const places = [artifact(platform), ...(mayBeOwn && platform === thisPlatform ? [ownBuild(platform)] : [])]
    const found = places.map((place) => path.resolve(ROOT, place)).find(existsSync)
    if (found !== undefined) built.set(platform, found)
  }
  return { built, missing: platforms.filter((platform) => !built.has(platform)) }
}

/**
 * Makes the package of a platform, ready to publish: its files, and a manifest by which npm installs it only there.
 * @param {object} manifest of the package that it is a part of
 * @param {string} source the built file
 * @param {string} target folder, made here
 */
export function stagePlatformPackage(manifest, platform, source, target) {
  const { what, file, isMain, crate } = WITH_PLATFORM_PACKAGES[manifest.name]
  const [os, cpu, libc] = platform.split('-')
  const { version, license, repository, homepage, bugs, engines, publishConfig } = manifest
  mkdirSync(target, { recursive: true })
  cpSync(source, path.join(target, file(platform)))
  cpSync(path.join(ROOT, 'LICENSE'), path.join(target, 'LICENSE'))
  writeFileSync(path.join(target, NOTICES), noticesOf(...crate))
  const ofPlatform = {
    name: `${manifest.name}-${platform}`,
    version,
    description: `The ${what}, built for ${platform}`,
    license,
    repository,
    homepage,
    bugs,
    engines,
    os: [os],
    cpu: [cpu],
    // npm, pnpm and Yarn compare it with the C library; Yarn 1 does not know it and installs both.
    ...(libc === undefined ? undefined : { libc: [libc === 'gnu' ? 'glibc' : 'musl'] }),
    ...(isMain ? { main: file(platform) } : undefined),
    files: [file(platform), NOTICES],
    publishConfig,
  }
  writeFileSync(path.join(target, 'package.json'), `${JSON.stringify(ofPlatform, undefined, 2)}\n`)
  const readme = `# ${ofPlatform.name}\n\n${ofPlatform.description}. Install \`${manifest.name}\`, which picks the right one.\n`
  writeFileSync(path.join(target, 'README.md'), readme)
}
