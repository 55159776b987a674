import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { build } from 'esbuild'
import { expect, it, onTestFinished } from 'vitest'
import { freePort } from 'webmq-services'
import { run } from '../src/dev/vite/run.js'

it('does not wait for ever for a program that answers elsewhere, or not at all', async () => {
  const server = run(['-e', 'setInterval(() => undefined, 1_000)'], () => undefined)
  onTestFinished(server.release)
  expect(await server.isSilent(`http://127.0.0.1:${await freePort()}`, 100)).toBe(true)
})

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

// A dev server that was killed left webmq-server behind, and the next one found its port taken: nobody told the child.
it('ends its program when it is killed itself', async () => {
  const source = new URL('../src/dev/vite/run.ts', import.meta.url).pathname
  const bundle = await build({ entryPoints: [source], bundle: true, write: false, format: 'esm', platform: 'node' })
  const program = 'console.log(process.pid); setInterval(() => undefined, 1_000)'
  const parent = spawn(
    process.execPath,
    ['--input-type=module', '-e', `${bundle.outputFiles[0]?.text}; run(['-e', ${JSON.stringify(program)}], () => 0)`],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const [line] = await once(parent.stdout, 'data')
  const pid = Number(line)
  expect(isRunning(pid)).toBe(true)
  parent.kill('SIGKILL')
  await expect.poll(() => isRunning(pid)).toBe(false)
})
