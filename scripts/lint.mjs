import { build } from './lib/build.mjs'
import { runLint } from './lib/runners.mjs'
import { runScript } from './lib/steps.mjs'

await runScript(async () => {
  await build()
  const { failed } = await runLint()
  if (failed > 0) process.exitCode = 1
})
