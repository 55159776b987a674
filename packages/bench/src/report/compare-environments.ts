import type { ResultRecord } from '../results/result.js'
import { environmentFacts } from './environment.js'

/** Facts that may differ between comparable results: time, commit and command. */
const MAY_DIFFER = ['command', 'startedAt', 'commit', 'loadAverage', 'openFilesLimit']
/** Settings that decide which rows exist, not the values in a row. */
const ROW_SETTINGS = ['targets', 'tiers', 'modes']
/** From this many runnable tasks per core before the run, a machine was not quiet. */
const QUIET_LOAD_PER_CORE = 0.25

/** Differences between two results beside the code, one sentence each; empty when they are comparable. */
export function compareEnvironments(before: ResultRecord, after: ResultRecord): string[] {
  if (before === after) return []
  const facts = environmentFacts(after)
  const differing = environmentFacts(before).flatMap(({ key, label, value }) => {
    const other = facts.find((fact) => fact.key === key)
    return MAY_DIFFER.includes(key) || other === undefined || other.value === value
      ? []
      : [`${label} differs: ${value} and ${other.value}.`]
  })
  const settings = Object.keys(before.config).flatMap((key) => {
    const values = [before.config[key], after.config[key]].map((value) => JSON.stringify(value) ?? 'none')
    return ROW_SETTINGS.includes(key) || values[0] === values[1]
      ? []
      : [`The setting ${key} differs: ${values.join(' and ')}.`]
  })
  const loads = [before, after].flatMap(({ machine }, index) =>
    machine.loadAverage > QUIET_LOAD_PER_CORE * machine.cores
      ? [`The machine was not quiet before the ${index === 0 ? 'first' : 'second'} run: load ${machine.loadAverage}.`]
      : [],
  )
  return [...differing, ...settings, ...loads]
}
