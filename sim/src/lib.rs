//! A simulated world around the Capstan core: fault schedules, oracles, replay.
