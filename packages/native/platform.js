/** Every platform that the engine is built for. Packages and addons are named after it. */
export const PLATFORMS = [
  'linux-x64-gnu',
  'linux-x64-musl',
  'linux-arm64-gnu',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
]

/** The machine that this process runs on. */
export function thisSystem() {
  const { platform, arch } = process
  return platform === 'linux' ? { platform, arch, glibcVersion: glibcVersion() } : { platform, arch }
}

/** Name of a system's platform; `undefined` where the engine does not run. */
export function platformName({ platform, arch, glibcVersion }) {
  const libc = platform === 'linux' ? [glibcVersion === undefined ? 'musl' : 'gnu'] : []
  const name = [platform, arch, ...libc].join('-')
  return PLATFORMS.includes(name) ? name : undefined
}

/** File name of the addon of a platform. */
export const addonFileName = (platform) => `webmq-native.${platform}.node`

/** Name of the package that holds the addon of a platform. */
export const packageName = (platform) => `webmq-native-${platform}`

/** What `node` itself is linked against; `undefined` with musl. */
function glibcVersion() {
  const { report } = process
  // With the network in it, the report looks up the names of all peers.
  const { excludeNetwork } = report
  report.excludeNetwork = true
  try {
    return report.getReport().header.glibcVersionRuntime
  } finally {
    report.excludeNetwork = excludeNetwork
  }
}
