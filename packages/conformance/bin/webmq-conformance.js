#!/usr/bin/env node
// `webmq-conformance client [--only TEXT] -- ADAPTER…`: plays the cases against a client in any language.
import { runCases } from '../dist/client/index.js'

const [suite, ...rest] = process.argv.slice(2)
const end = rest.indexOf('--')
const command = end < 0 ? [] : rest.slice(end + 1)
const only = rest[0] === '--only' ? rest[1] : undefined

if (suite !== 'client' || command.length === 0) {
  console.error('usage: webmq-conformance client [--only TEXT] -- ADAPTER [PARAMETER...]')
  process.exit(2)
}

const counts = { passed: 0, failed: 0, skipped: 0 }
for await (const { name, clauses, outcome, reason } of runCases(command, { only })) {
  counts[outcome]++
  console.log(
    `${outcome === 'passed' ? 'ok  ' : outcome} ${name} [${clauses.join(', ')}]${reason ? `: ${reason}` : ''}`,
  )
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0
