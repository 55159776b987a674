// Builds the addon and puts it beside index.js under the name that it is looked for. With `--dev`, cargo takes the profile
// of the Rust tests, which saves most of the time, and the addon goes to the folder `dev`: tests name it in
// WEBMQ_NATIVE_ADDON, and no bench measures it by mistake.
import { spawn } from 'node:child_process'
import { copyFile, mkdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { addonFileName, platformName, thisSystem } from './platform.js'

const here = dirname(fileURLToPath(import.meta.url))
const isForTests = process.argv.includes('--dev')

/** Path of the library that cargo made. */
async function build() {
  const profile = isForTests ? 'dev' : 'release'
  const args = [
    'build',
    '--profile',
    profile,
    '--package',
    'webmq-addon',
    '--message-format',
    'json-render-diagnostics',
  ]
  const cargo = spawn('cargo', args, { cwd: here, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise((resolve, reject) => {
    cargo.once('error', (cause) =>
      reject(new Error('cargo cannot be run; install Rust from https://rustup.rs', { cause })),
    )
    cargo.once('close', resolve)
  })
  let library
  for await (const line of createInterface({ input: cargo.stdout })) {
    const message = JSON.parse(line)
    if (message.reason === 'compiler-artifact' && message.target.name === 'webmq_addon') [library] = message.filenames
  }
  const status = await ended
  if (status !== 0) throw new Error(`cargo build ended with status ${status}`)
  if (library === undefined) throw new Error('cargo built no library')
  return library
}

const platform = platformName(thisSystem())
if (platform === undefined) {
  console.log(`webmq-native: nothing to build, the engine does not run on ${process.platform} ${process.arch}`)
} else {
  const fileName = addonFileName(platform)
  const library = await build()
  // Renamed into place: a process that has the old one open keeps it whole.
  const folder = isForTests ? join(here, 'dev') : here
  await mkdir(folder, { recursive: true })
  const target = join(folder, fileName)
  await copyFile(library, `${target}.new`)
  await rename(`${target}.new`, target)
  console.log(`webmq-native: built ${fileName}`)
}
