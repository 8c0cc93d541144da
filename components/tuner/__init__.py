"""The Tuner: TFX's own, with KerasTuner's oracles and trials that are trainings like any other."""
