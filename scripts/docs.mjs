// `npm run docs`: serves the site while its files are edited; what follows `--` goes to VitePress, such as `--port 9000`.
// `npm run docs:build`: makes it in site/dist/next; with `-- --release` in the folder of this version, with links to its tag.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { installPackages } from './lib/build.mjs'
import { ROOT, runScript } from './lib/steps.mjs'

await runScript(async () => {
  await installPackages()
  const [command = 'dev', ...rest] = process.argv.slice(2)
  const isRelease = rest.includes('--release')
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'packages', 'client', 'package.json'), 'utf8'))
  const vitepress = path.join(ROOT, 'site', 'node_modules', 'vitepress', 'bin', 'vitepress.js')
  const args = [vitepress, command, path.join(ROOT, 'site'), ...rest.filter((arg) => arg !== '--release')]
  const env = { ...process.env, ...(isRelease && { WEBMQ_DOCS_VERSION: version }) }
  const [exitCode, signal] = await once(spawn(process.execPath, args, { stdio: 'inherit', env }), 'close')
  process.exitCode = exitCode ?? (signal ? 1 : 0)
})
