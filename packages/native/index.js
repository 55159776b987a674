import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { missingReason } from './missing-reason.js'
import { addonFileName, PLATFORMS, packageName, platformName, thisSystem } from './platform.js'

const require = createRequire(import.meta.url)
const { version } = require('./package.json')

/**
 * Loads the addon that the environment variable WEBMQ_NATIVE_ADDON names by its path, else the one that was built here,
 * else that of the package for this platform.
 */
export function loadNativeEngine() {
  const system = thisSystem()
  const platform = platformName(system)
  const isCheckout = existsSync(pathOf('Cargo.toml'))
  const findings = { system, version, isCheckout, otherPackages: [] }
  const named = process.env.WEBMQ_NATIVE_ADDON
  if (named) return load(named, findings)
  if (platform === undefined) throw missing(findings)

  const built = pathOf(addonFileName(platform))
  if (existsSync(built)) return load(built, findings)
  const installedVersion = versionOf(packageName(platform))
  if (installedVersion === version) return load(packageName(platform), findings)
  if (installedVersion !== undefined) throw missing({ ...findings, installedVersion })
  throw missing({ ...findings, otherPackages: PLATFORMS.map(packageName).filter((name) => versionOf(name) !== undefined) })
}

function load(file, findings) {
  try {
    return require(file).NativeEngine
  } catch (loadError) {
    throw missing({ ...findings, loadError })
  }
}

/** `undefined` when the package is not installed. */
function versionOf(name) {
  try {
    return require(`${name}/package.json`).version
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error
    return undefined
  }
}

function missing(findings) {
  const reason = missingReason(findings)
  const { loadError: cause } = findings
  const error = new Error(`${reason}; or use the ws transport`, cause === undefined ? undefined : { cause })
  return Object.assign(error, { code: 'E_TRANSPORT_MISSING', reason })
}

function pathOf(file) {
  return fileURLToPath(new URL(file, import.meta.url))
}
