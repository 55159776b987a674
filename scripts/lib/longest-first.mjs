import path from 'node:path'
import { BaseSequencer } from 'vitest/node'
import { ROOT } from './steps.mjs'

/** Seconds that the longest files take, for a fresh clone: afterwards the last run says it. */
const USUAL_SECONDS = {}

/**
 * Starts the files of a group that take longest first, so that no worker is left alone with one at the end.
 * vitest itself does so within a project only.
 */
export class LongestFirst extends BaseSequencer {
  async sort(files) {
    const costs = new Map(files.map((file) => [file, this.#durationMs(file)]))
    return [...files].sort((one, other) => costs.get(other) - costs.get(one))
  }

  #durationMs({ project, moduleId }) {
    const file = path.relative(ROOT, moduleId)
    const last = this.ctx.cache.getFileTestResults(`${project.name}:${file}`)
    return last?.duration ?? (USUAL_SECONDS[file] ?? 0) * 1_000
  }
}
