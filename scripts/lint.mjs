import { build } from './lib/build.mjs'
import { printCounts, runLint } from './lib/runners.mjs'
import { runScript } from './lib/steps.mjs'

await runScript(async () => {
  await build()
  printCounts([await runLint(true)])
})
