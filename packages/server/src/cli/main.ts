import { EXIT } from './exit-codes.js'
import { run } from './run.js'

const { env, stdin, stdout, stderr } = process
// `webmq-server config docs | head`: whoever reads may stop to.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exitCode = error.code === 'EPIPE' ? EXIT.OK : EXIT.FAILED
})
process.exitCode = await run(process.argv.slice(2), { env, stdin, stdout, stderr })
