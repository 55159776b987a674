import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The installed package of this name, by its own manifest: `ws 8.23.0`, `uWebSockets.js (@rjweb/uws 1.5.0)`. */
export function installedVersion(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.resolve(name)))
  // A folder of a package may have a manifest without a version, which only says how its files are read.
  for (; folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (!existsSync(file)) continue
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as { readonly name?: string; readonly version?: string }
    if (manifest.version === undefined) continue
    return manifest.name === name ? `${name} ${manifest.version}` : `${name} (${manifest.name} ${manifest.version})`
  }
  throw new Error(`the package ${name} has no manifest`)
}
