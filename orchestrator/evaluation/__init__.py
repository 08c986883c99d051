"""How good the answers are: judged queries through the engine itself, measures, comparisons, a report, and tuning."""
