import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { addonFileName, PLATFORMS, platformName, thisSystem } from '../../packages/native/platform.js'
import { ROOT } from '../lib/steps.mjs'

/**
 * Packages that have a part per platform, `<name>-<platform>`: which files it holds, and where they are built.
 * `foldersOf`: folders with a platform's files, the first that has them all counts.
 */
export const WITH_PLATFORM_PACKAGES = {
  'webmq-native': {
    what: 'native engine of webmq-server',
    filesOf: (platform) => [addonFileName(platform)],
    foldersOf: () => ['packages/native/artifacts', 'packages/native'],
    main: addonFileName,
  },
}

/** Platforms of which a package has every file built. */
export function builtPlatforms(name) {
  return PLATFORMS.filter((platform) => folderOf(name, platform) !== undefined)
}

/** Platform of this machine; `undefined` where nothing is built for it. */
export const thisPlatform = platformName(thisSystem())

/**
 * Makes the package of a platform, ready to publish: its files, and a manifest by which npm installs it only there.
 * @param {object} manifest of the package that it is a part of
 * @param {string} target folder, made here
 */
export function stagePlatformPackage(manifest, platform, target) {
  const { what, filesOf, main } = WITH_PLATFORM_PACKAGES[manifest.name]
  const folder = folderOf(manifest.name, platform)
  const [os, cpu, libc] = platform.split('-')
  const { version, license, repository, homepage, bugs, engines, publishConfig } = manifest
  mkdirSync(target, { recursive: true })
  for (const file of filesOf(platform)) cpSync(path.join(ROOT, folder, file), path.join(target, file))
  cpSync(path.join(ROOT, 'LICENSE'), path.join(target, 'LICENSE'))
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
    ...(main === undefined ? undefined : { main: main(platform) }),
    files: filesOf(platform),
    publishConfig,
  }
  writeFileSync(path.join(target, 'package.json'), `${JSON.stringify(ofPlatform, undefined, 2)}\n`)
  const readme = `# ${ofPlatform.name}\n\n${ofPlatform.description}. Install \`${manifest.name}\`, which picks the right one.\n`
  writeFileSync(path.join(target, 'README.md'), readme)
}

function folderOf(name, platform) {
  const { filesOf, foldersOf } = WITH_PLATFORM_PACKAGES[name]
  return foldersOf(platform).find((folder) =>
    filesOf(platform).every((file) => existsSync(path.join(ROOT, folder, file))),
  )
}
