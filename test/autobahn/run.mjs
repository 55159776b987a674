// Autobahn's conformance suite for RFC 6455 against an echo server on one transport:
//   node test/autobahn/run.mjs [--cases '1.*,7.*'] [--transport native|ws|uws] [--compression]
// `--compression` turns permessage-deflate on, and takes its cases (12.* and 13.*, some twenty minutes) for the default.
// Exit code 1 when a case failed. The last line is `autobahn: N passed, N failed, N skipped`.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { must, runScript, StepError, step } from '../../scripts/lib/steps.mjs'
import { CACHE, installTestSuite } from './python.mjs'
import { readReport } from './report.mjs'

/** Everything but compression, which is off by default. */
const PLAIN_CASES = '1.*,2.*,3.*,4.*,5.*,6.*,7.*,9.*,10.*'
const COMPRESSION_CASES = '12.*,13.*'
const TRANSPORTS = ['native', 'ws', 'uws']

function readArguments() {
  const { values } = parseArgs({
    options: {
      cases: { type: 'string' },
      transport: { type: 'string', default: 'native' },
      compression: { type: 'boolean', default: false },
    },
  })
  if (!TRANSPORTS.includes(values.transport)) throw new StepError(`--transport is one of ${TRANSPORTS.join(', ')}.`)
  return { ...values, cases: values.cases ?? (values.compression ? COMPRESSION_CASES : PLAIN_CASES) }
}

/** @returns {Promise<{ port: number, stop: () => Promise<void> }>} */
async function startEchoServer(transport, compression) {
  const file = fileURLToPath(new URL('echo-server.mjs', import.meta.url))
  const server = fork(file, compression ? [transport, 'compression'] : [transport])
  const ended = once(server, 'exit')
  const started = await Promise.race([once(server, 'message'), ended.then(() => undefined)])
  if (started === undefined) {
    throw new StepError(`The echo server on ${transport} did not start: build first, with \`npm run build\`.`)
  }
  const stop = async () => {
    if (server.connected) server.disconnect()
    await ended
  }
  return { port: started[0].port, stop }
}

await runScript(async () => {
  const { cases, transport, compression } = readArguments()
  const wstest = await step("Getting Autobahn's test suite", installTestSuite)
  const outdir = path.join(CACHE, `report-${transport}${compression ? '-compression' : ''}`)
  const server = await startEchoServer(transport, compression)
  try {
    rmSync(outdir, { recursive: true, force: true })
    mkdirSync(outdir, { recursive: true })
    const spec = path.join(outdir, 'spec.json')
    const servers = [{ agent: transport, url: `ws://127.0.0.1:${server.port}` }]
    writeFileSync(spec, JSON.stringify({ outdir, servers, cases: cases.split(','), 'exclude-cases': [] }))
    await step(`Running the cases ${cases} against ${transport}`, () =>
      must('wstest failed.', wstest, ['--mode', 'fuzzingclient', '--spec', spec], { log: `autobahn-${transport}` }),
    )
  } finally {
    await server.stop()
  }
  const { passed, failed, skipped, byBehaviour, remarks } = readReport(outdir, transport)
  if (passed + failed + skipped === 0) throw new StepError(`No case matches ${cases}.`)
  for (const remark of remarks) process.stdout.write(`  ${remark}\n`)
  const counts = [...byBehaviour].map(([behaviour, count]) => `${count} ${behaviour}`)
  process.stdout.write(`  ${counts.join(', ')}; the full report is ${path.join(outdir, 'index.html')}\n`)
  process.stdout.write(`autobahn: ${passed} passed, ${failed} failed, ${skipped} skipped\n`)
  if (failed > 0) process.exitCode = 1
})
