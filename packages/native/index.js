import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addonFileName } from './addon-file-name.js'

const require = createRequire(import.meta.url)

/** Throws an error with the code `E_TRANSPORT_MISSING` when there is no addon for this machine. */
export function loadNativeEngine() {
  const fileName = addonFileName()
  if (fileName === undefined) {
    throw missing(`there is no native engine for ${process.platform} on ${process.arch}; use the uws transport`)
  }
  const path = join(dirname(fileURLToPath(import.meta.url)), fileName)
  if (!existsSync(path)) throw missing(`${fileName} was not built; run: npm run build --workspace webmq-native, or in a checkout npm run build`)
  try {
    return require(path).NativeEngine
  } catch (cause) {
    throw missing(`${fileName} cannot be loaded; was it built for another system?`, cause)
  }
}

function missing(message, cause) {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { code: 'E_TRANSPORT_MISSING' })
}
