// `npm start`: builds, then runs the server on the embedded broker with its demo page.
// Everything after `--` goes to the server: `npm start -- --port 9000`.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { build } from './lib/build.mjs'
import { ROOT, runScript } from './lib/steps.mjs'

await runScript(async () => {
  await build()
  const server = path.join(ROOT, 'packages', 'server', 'bin', 'webmq-server.js')
  const child = spawn(process.execPath, [server, '--demo', ...process.argv.slice(2)], { stdio: 'inherit' })
  // A terminal sends Ctrl-C to the whole group; a supervisor signals only this process.
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  process.on('SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT')
  })
  const exitCode = await new Promise((resolve) =>
    child.on('close', (code, signal) => resolve(code ?? (signal ? 1 : 0))),
  )
  process.exitCode = exitCode
})
