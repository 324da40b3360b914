"""The findings in sentences."""

from iqrl.reproduction.findings import list_findings


def test_findings_follow_the_numbers(noise):
    """Noise does not reproduce the paper, and the findings must not say that it does."""
    matched = sum(one.matches for one in noise.highest)
    assert matched < 20
    findings = "\n".join(list_findings(noise))
    assert f"{matched} of 72 highest returns" in findings
    assert "**1 run was saved twice**: Pong DQN N=10,000 runs 1 and 4." in findings
    assert "0 of the 20 runs with the random encoder" in findings
