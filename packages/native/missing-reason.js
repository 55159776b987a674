import { addonFileName, packageName, platformName } from './platform.js'

const SYSTEM_NAMES = { darwin: 'macOS', win32: 'Windows', linux: 'Linux', freebsd: 'FreeBSD' }

/** What is missing on a system, and how to get it where that is possible: one sentence without a full stop. */
export function missingReason({ system, version, isCheckout, otherPackages, installedVersion, loadError }) {
  const platform = platformName(system)
  if (platform === undefined) return `there is no native engine for ${describe(system)}`
  const name = packageName(platform)
  if (loadError !== undefined) return `${addonFileName(platform)} does not load: ${loadReason(loadError, system)}`
  if (installedVersion !== undefined) {
    return `${name} is ${installedVersion} but webmq-native is ${version}; run \`npm install ${name}@${version}\``
  }
  if (isCheckout) {
    return `${addonFileName(platform)} is not built; install Rust from https://rustup.rs and run \`npm run build\``
  }
  if (otherPackages.length > 0) {
    const other = otherPackages.join(' and ')
    return (
      `node_modules has ${other}, but this is ${describe(system)} and needs ${name}; ` +
      'delete node_modules and install on the system that runs it'
    )
  }
  return (
    `${name} is not installed, as with \`--omit=optional\` or a lock file of another system; ` +
    `run \`npm install ${name}@${version}\``
  )
}

/** The loader of the system says it in its own words; the usual ones get a way out. */
function loadReason(error, { glibcVersion }) {
  const firstLine = error.message.split('\n')[0]
  const [, needed] = firstLine.match(/version [`']GLIBC_([\d.]+)' not found/) ?? []
  if (needed !== undefined) {
    return `it needs glibc ${needed} or newer, and this system has ${glibcVersion}; use a newer system, or build it here`
  }
  if (/libc\.musl|ld-musl|wrong ELF class|invalid ELF header|incompatible architecture|mach-o/i.test(firstLine)) {
    return `it is of another system (${firstLine}); delete node_modules and install on the system that runs it`
  }
  return firstLine
}

function describe({ platform, arch, glibcVersion }) {
  const libc = platform !== 'linux' ? '' : glibcVersion === undefined ? ' with musl' : ' with glibc'
  return `${SYSTEM_NAMES[platform] ?? platform} on ${arch}${libc}`
}
